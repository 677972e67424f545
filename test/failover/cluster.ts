/** A PostgreSQL cluster under Patroni with etcd, as docs/high-availability.md recommends it: three nodes, one synchronous standby. */
import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, chownSync, closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import { type Clock, pause } from '#base'
import { listProcesses, signal } from '../../src/crash-test/process-tree.ts'
import { databaseMachines, type Machine, postgresFolder } from './machines.ts'

const databasePort = 15_432
const restPort = 18_008
const etcdPort = 12_379
const etcdPeerPort = 12_380
const startWithinMs = 120_000
const healthyWithinMs = 180_000
const stopWithinMs = 10_000
const pollMs = 250
const superuser = 'postgres'
const password = 'failover-test'

export interface Member {
  name: string
  role: string
  state: string
  timeline: number
  /** Octets behind the leader; undefined if unknown. */
  lag: number | undefined
}

export interface ClusterOptions {
  clock: Clock
  folder: string
  /** False: an asynchronous standby, with which a failover may lose mail. */
  synchronous: boolean
}

/** One node; `patroni` is undefined while it is not running. */
export interface Node extends Machine {
  data: string
  patroni: ChildProcess | undefined
}

export class Cluster {
  readonly nodes: Node[]
  readonly etcdMachine: Machine
  readonly #options: ClusterOptions
  #etcd: ChildProcess | undefined
  #isStopped = false

  constructor(options: ClusterOptions) {
    this.#options = options
    this.nodes = databaseMachines().map((machine) => ({ ...machine, data: join(options.folder, machine.name), patroni: undefined }))
    this.etcdMachine = { name: 'etcd', address: '127.0.77.9', user: 'root', uid: 0 }
  }

  /** All hosts, for DATABASE_URL. */
  get url(): string {
    return `postgres://postrider:${password}@${this.nodes.map(({ address }) => `${address}:${databasePort}`).join(',')}/postrider`
  }

  async start(): Promise<void> {
    this.startEtcd()
    for (const node of this.nodes) this.startNode(node)
    await this.untilHealthy(startWithinMs)
    const admin = await this.connect(await this.leader(), superuser, 'postgres')
    await admin.query(`create role postrider login password '${password}'`)
    await admin.query('create database postrider owner postrider')
    await admin.end()
  }

  startEtcd(): void {
    const { folder } = this.#options
    const client = `http://${this.etcdMachine.address}:${etcdPort}`
    const peer = `http://${this.etcdMachine.address}:${etcdPeerPort}`
    this.#etcd = this.#spawn('etcd', '/usr/bin/etcd', [
      '--name=etcd',
      `--data-dir=${join(folder, 'etcd')}`,
      `--listen-client-urls=${client}`,
      `--advertise-client-urls=${client}`,
      `--listen-peer-urls=${peer}`,
      `--initial-advertise-peer-urls=${peer}`,
      `--initial-cluster=etcd=${peer}`,
      '--logger=zap',
      '--log-level=error',
      '--enable-v2=true',
      // The test has no use for a durable etcd, and its flushes would compete with those of the nodes.
      '--unsafe-no-fsync',
    ])
  }

  stopEtcd(): void {
    signal(this.#etcd?.pid, 'SIGKILL')
  }

  startNode(node: Node): void {
    // A fault may end after the cluster.
    if (this.#isStopped) return
    mkdirSync(node.data, { recursive: true })
    chownSync(node.data, node.uid, node.uid)
    chmodSync(node.data, 0o700)
    const config = join(node.data, 'patroni.yml')
    writeFileSync(config, JSON.stringify(this.#configOf(node)))
    node.patroni = this.#spawn(node.name, '/usr/bin/setpriv', [
      `--reuid=${node.user}`,
      `--regid=${node.user}`,
      '--clear-groups',
      '/usr/bin/patroni',
      config,
    ])
  }

  /** The processes of the node's PostgreSQL: the main process first. */
  async postgresOf(node: Node): Promise<number[]> {
    let main: number
    try {
      main = Number(readFileSync(join(node.data, 'data', 'postmaster.pid'), 'utf8').split('\n')[0])
    } catch {
      return []
    }
    const all = await listProcesses()
    if (!all.some(({ pid, command }) => pid === main && command.includes('postgres'))) return []
    return [main, ...all.filter(({ parent }) => parent === main).map(({ pid }) => pid)]
  }

  async members(): Promise<Member[]> {
    for (const node of this.nodes) {
      // The answer may break off in its middle.
      const members = await this.#rest(node, '/cluster')
        .then(async (answer) => (answer.status === 200 ? ((await answer.json()) as { members: Member[] }).members : undefined))
        .catch(() => undefined)
      if (members) return members
    }
    return []
  }

  /** The node that holds the leader key and accepts writes; undefined during a failover. */
  async leaderNow(): Promise<Node | undefined> {
    const answers = await Promise.all(this.nodes.map((node) => this.#rest(node, '/primary').catch(() => undefined)))
    const index = answers.findIndex((answer) => answer?.status === 200)
    return this.nodes[index]
  }

  async leader(): Promise<Node> {
    const { clock } = this.#options
    const untilMs = clock.monotonicMs() + startWithinMs
    for (;;) {
      const node = await this.leaderNow()
      if (node) return node
      if (clock.monotonicMs() > untilMs) throw new Error('the cluster has no leader')
      await pause(clock, pollMs)
    }
  }

  /** The synchronous standby, or any standby of an asynchronous cluster. */
  async standby(): Promise<Node | undefined> {
    const members = await this.members()
    const role = this.#options.synchronous ? 'sync_standby' : 'replica'
    const name = members.find((one) => one.role === role)?.name
    return this.nodes.find((node) => node.name === name)
  }

  /** Restarts ended members and waits until all three run, one is the leader, and one follows synchronously without a lag. */
  async untilHealthy(withinMs = healthyWithinMs): Promise<void> {
    const { clock, synchronous } = this.#options
    const untilMs = clock.monotonicMs() + withinMs
    for (;;) {
      for (const node of this.nodes)
        if (node.patroni === undefined || node.patroni.exitCode !== null || node.patroni.signalCode !== null) this.startNode(node)
      const members = await this.members()
      const runs = members.filter(
        ({ state, role, lag }) => ['running', 'streaming'].includes(state) && (role === 'leader' || (lag ?? 0) < 16_777_216),
      )
      const leader = members.find(({ role }) => role === 'leader')
      const together = runs.every(({ timeline }) => timeline === leader?.timeline)
      if (runs.length === this.nodes.length && leader && together && (!synchronous || members.some(({ role }) => role === 'sync_standby')))
        return
      if (clock.monotonicMs() > untilMs) throw new Error(`the cluster did not recover: ${JSON.stringify(members)}`)
      await pause(clock, pollMs)
    }
  }

  async switchover(): Promise<void> {
    const leader = await this.leader()
    const standby = await this.standby()
    await this.#rest(leader, '/switchover', JSON.stringify({ leader: leader.name, candidate: standby?.name }), 60_000)
  }

  async connect(node: Node, user: string, database: string): Promise<Client> {
    const client = new Client({ host: node.address, port: databasePort, user, password, database, connectionTimeoutMillis: 2000 })
    client.on('error', () => {})
    await client.connect()
    return client
  }

  /** Ends every process that works in the folder, also those that a node's Patroni left behind or that are no longer known here. */
  async stop(): Promise<void> {
    const { clock, folder } = this.#options
    this.#isStopped = true
    this.stopEtcd()
    const untilMs = clock.monotonicMs() + stopWithinMs
    for (;;) {
      const left = (await listProcesses()).filter(({ command }) => command.includes(`${folder}/`))
      if (left.length === 0 || clock.monotonicMs() > untilMs) return
      for (const { pid } of left) {
        signal(pid, 'SIGCONT')
        signal(pid, 'SIGKILL')
      }
      await pause(clock, pollMs)
    }
  }

  #spawn(name: string, program: string, words: string[]): ChildProcess {
    const log = openSync(join(this.#options.folder, `${name}.log`), 'a')
    // Detached, so that Ctrl-C ends the test and not the nodes.
    const child = spawn(program, words, {
      stdio: ['ignore', log, log],
      cwd: '/',
      detached: true,
      env: { PATH: process.env.PATH, LC_ALL: 'C.UTF-8' },
    })
    child.on('error', () => {})
    closeSync(log)
    return child
  }

  async #rest(node: Node, path: string, body?: string, withinMs = 700): Promise<Response> {
    const late = AbortSignal.timeout(withinMs)
    return fetch(`http://${node.address}:${restPort}${path}`, { signal: late, ...(body === undefined ? {} : { method: 'POST', body }) })
  }

  #configOf(node: Node): object {
    const { synchronous } = this.#options
    const login = { username: superuser, password }
    return {
      scope: 'postrider',
      name: node.name,
      restapi: { listen: `${node.address}:${restPort}`, connect_address: `${node.address}:${restPort}` },
      // The second API of etcd: with the third, Patroni before 3.0.3 overwrites the leader key of another node after a pause, and so throws
      // away synchronously replicated data (docs/high-availability.md).
      etcd: { hosts: [`${this.etcdMachine.address}:${etcdPort}`] },
      bootstrap: {
        dcs: {
          ttl: 20,
          loop_wait: 5,
          retry_timeout: 5,
          maximum_lag_on_failover: 16_777_216,
          synchronous_mode: synchronous,
          synchronous_mode_strict: synchronous,
          postgresql: {
            use_pg_rewind: true,
            use_slots: true,
            parameters: {
              max_connections: 200,
              wal_log_hints: 'on',
              // A commit on a new primary waits until a standby has connected to it, which by default tries every five seconds.
              wal_retrieve_retry_interval: '500ms',
              wal_keep_size: '256MB',
              max_wal_senders: 10,
              max_replication_slots: 10,
            },
          },
        },
        initdb: [{ encoding: 'UTF8' }, { locale: 'C' }],
      },
      postgresql: {
        listen: `${node.address}:${databasePort}`,
        connect_address: `${node.address}:${databasePort}`,
        data_dir: join(node.data, 'data'),
        bin_dir: postgresFolder(),
        pgpass: join(node.data, 'pgpass'),
        authentication: { superuser: login, replication: { username: 'replicator', password }, rewind: login },
        parameters: { unix_socket_directories: node.data, shared_buffers: '64MB' },
        pg_hba: ['local all all trust', 'host all all 127.0.0.0/8 scram-sha-256', 'host replication all 127.0.0.0/8 scram-sha-256'],
        remove_data_directory_on_rewind_failure: true,
        remove_data_directory_on_diverged_timelines: true,
      },
    }
  }
}
