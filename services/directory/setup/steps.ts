import type { DirectoryType } from '../model.js'

/** What an admin has to do at one provider. Words between asterisks are quoted from the provider's own pages. */
export interface SetupProvider {
  readonly key: string
  readonly name: string
  readonly type: DirectoryType
  readonly steps: readonly string[]
  /** What happens next. */
  readonly outcome: string
}

/** docs/directory.md has the same steps, and the attributes that each provider sends. */
export const providers: readonly [SetupProvider, ...SetupProvider[]] = [
  {
    key: 'okta',
    name: 'Okta',
    type: 'okta-scim-v2',
    steps: [
      'Open *Applications → Applications → Browse App Catalog*, search *SCIM 2.0 Test App (Header Auth)*, choose *Add Integration*, name it, *Done*.',
      'Open *Provisioning → Configure API Integration* and enter the base URL as *Base URL* and the token as *API Token*.',
      'Choose *Test API Credentials*; it must succeed. *Save*.',
      'Open *Provisioning → To App → Edit*, tick *Create Users*, *Update User Attributes* and *Deactivate Users*. *Save*.',
      'Open *Assignments → Assign* and assign people or groups.',
      'Open *Push Groups → Find groups by name* and push the groups you want here.',
    ],
    outcome: 'Assigned people arrive within seconds.',
  },
  {
    key: 'entra-id',
    name: 'Microsoft Entra ID',
    type: 'azure-scim-v2',
    steps: [
      'Open *Enterprise applications → New application → Create your own application*, name it, choose *Integrate any other application you don’t find in the gallery*, *Create*.',
      'Open *Provisioning → Get started* and choose the mode *Automatic*.',
      'Enter the base URL as *Tenant URL* and the token as *Secret Token*.',
      'Choose *Test Connection*; it must succeed. *Save*.',
      'Open *Users and groups → Add user/group* and add the users and groups to provision.',
      'Choose *Provisioning → Start provisioning*.',
    ],
    outcome: 'The first cycle takes 20 to 40 minutes; Provision on demand brings one user at once.',
  },
  {
    key: 'onelogin',
    name: 'OneLogin',
    type: 'onelogin-scim-v2',
    steps: [
      'Open *Applications → Add App*, search *SCIM Provisioner with SAML (SCIM v2 Enterprise)*, name it, *Save*.',
      'Open *Configuration*: enter the base URL as *SCIM Base URL* and the token as *SCIM Bearer Token*. Leave *SCIM JSON Template* as it is.',
      'Choose *API Connection → Enable*, then *Save*.',
      'Open *Provisioning*, tick *Enable provisioning*, and choose what needs approval. *Save*.',
      'Open *Parameters → Groups* and tick *Include in User Provisioning*.',
      'Open *Access* and choose the roles whose users to provision.',
    ],
    outcome: 'What waits for approval is listed under Users → Provisioning.',
  },
  {
    key: 'jumpcloud',
    name: 'JumpCloud',
    type: 'jumpcloud-scim-v2',
    steps: [
      'Open *SSO Applications → Add New Application → Custom Application*, tick *Export users to this app (Identity Management)*, name it, *Save Application*, *Configure Application*.',
      'Open *Identity Management* and choose *SCIM Version* 2.0.',
      'Enter the base URL as *Base URL*, the token as *Token Key*, and any new address as *Test User Email*.',
      'Choose *Test Connection*; it makes a test user and a test group and deletes both again.',
      'Tick *Enable management of User Groups and Group Membership in this application*, choose *Activate*, *Save*.',
      'Open *User Groups*, choose the groups to provision, *Save*.',
    ],
    outcome: 'The users of the chosen groups arrive within minutes.',
  },
  {
    key: 'other',
    name: 'Another provider',
    type: 'generic-scim-v2',
    steps: [
      'Choose SCIM 2.0 with a bearer token.',
      'Enter the base URL and the token.',
      'Name userName as the unique attribute.',
      'Assign the people and groups to provision.',
    ],
    outcome:
      'Where the provider asks: PATCH, filter, sort, Bulk and ETag are supported, changing passwords is not.',
  },
]

/** The provider with that key, else the one for the directory's type, else the generic one. */
export const providerOf = (key: string | undefined, type: DirectoryType): SetupProvider =>
  providers.find(each => each.key === key) ??
  providers.find(each => each.type === type) ??
  (providers.at(-1) as SetupProvider)
