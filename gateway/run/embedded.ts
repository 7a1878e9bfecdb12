/** The modules of the embedded services, loaded only when a configuration uses them. */
export const EMBEDDED = {
  directory: () => import('../../services/directory/index.js'),
  identity: () => import('../../services/identity/index.js'),
  welcome: () => import('../../services/welcome/index.js'),
}
