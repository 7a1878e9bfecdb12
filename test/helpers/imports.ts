import { posix } from 'node:path'
import ts from 'typescript'

/** How a module is imported: as a value, for its types only (removed by the compiler), or at run time by `import()`. */
export type Manner = 'value' | 'types' | 'dynamic'

export interface Import {
  /** A path from the project's root for our own files (`gateway/types.ts`), otherwise a package's name. */
  readonly target: string
  readonly own: boolean
  readonly manner: Manner
}

/** What the TypeScript source `text` at `path` (from the project's root) imports, except Node's own modules. */
export function importsOf(path: string, text: string): Import[] {
  const found: Import[] = []
  const add = (specifier: ts.Node | undefined, manner: Manner) => {
    if (specifier && ts.isStringLiteralLike(specifier) && !specifier.text.startsWith('node:')) {
      found.push({ ...resolve(path, specifier.text), manner })
    } else if (specifier && !ts.isStringLiteralLike(specifier)) {
      found.push({ target: `an expression (${specifier.getText()})`, own: false, manner })
    }
  }
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node)) {
      add(node.moduleSpecifier, node.importClause?.isTypeOnly ? 'types' : 'value')
    } else if (ts.isExportDeclaration(node)) {
      add(node.moduleSpecifier, node.isTypeOnly ? 'types' : 'value')
    } else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
      add(node.argument.literal, 'types')
    } else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      add(node.arguments[0], 'dynamic')
    }
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true))
  return found
}

function resolve(path: string, specifier: string): Pick<Import, 'target' | 'own'> {
  if (specifier.startsWith('.')) {
    return { target: posix.join(posix.dirname(path), specifier).replace(/\.js$/, '.ts'), own: true }
  }
  const [scope = '', name] = specifier.split('/')
  return { target: scope.startsWith('@') ? `${scope}/${name}` : scope, own: false }
}
