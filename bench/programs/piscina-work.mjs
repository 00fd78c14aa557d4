export { work as default } from './grain-work.mjs'
