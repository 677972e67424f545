/** In place of contents that the member's role may not see. */
import { texts } from '../texts.ts'
import { Empty } from './basic-components.tsx'

export const HiddenContent = () => <Empty>{texts.privacy.hidden}</Empty>
