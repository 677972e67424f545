/** Line charts over time with uPlot, in the available width. */
import { useEffect, useRef } from 'react'
import uPlot from 'uplot'
import { texts } from '../texts.ts'

export interface Drawing {
  label: string
  /** Milliseconds. */
  times: readonly number[]
  lines: readonly { name: string; colour: string; values: readonly (number | null)[] }[]
  /** Appended to each value. */
  unit: string
}

const heightPx = 240
const faint = (share: number) => `rgb(128 128 128 / ${share})`

export default function Plot({ label, times, lines, unit }: Drawing) {
  const ref = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const place = ref.current
    if (!place) return undefined
    const axis = {
      stroke: getComputedStyle(place).color,
      grid: { stroke: faint(0.25), width: 1 },
      ticks: { stroke: faint(0.4), width: 1 },
    }
    const shown = (value: number | null) =>
      value === null ? '' : `${value.toLocaleString(undefined, { maximumFractionDigits: 2 })}${unit}`
    const plot = new uPlot(
      {
        width: place.clientWidth,
        height: heightPx,
        axes: [axis, { ...axis, size: 64, values: (_plot, splits) => splits.map(shown) }],
        series: [
          {},
          ...lines.map(({ name, colour }) => ({
            label: name,
            stroke: colour,
            width: 2,
            points: { show: times.length < 40 },
            value: (_plot: uPlot, value: number | null) => shown(value),
          })),
        ],
        scales: { y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.05 : 1] } },
      },
      [times.map((at) => at / 1000), ...lines.map(({ values }) => values)] as uPlot.AlignedData,
      place,
    )
    const watch = new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: heightPx }))
    watch.observe(place)
    return () => {
      watch.disconnect()
      plot.destroy()
    }
  }, [times, lines, unit])
  return <div ref={ref} role="img" aria-label={texts.chart.inTable(label)} className="w-full min-w-0" />
}
