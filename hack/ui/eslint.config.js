// The rules for the page: those that find mistakes, and the limits of the daemon's code.
import { createRequire } from 'node:module';
import { join } from 'node:path';

const require = createRequire(join(process.env.PACKAGES, 'eslint.config.js'));
const js = require('@eslint/js');
const globals = require('globals');

export default [
  js.configs.recommended,
  {
    languageOptions: { ecmaVersion: 2023, sourceType: 'module', globals: globals.browser },
    rules: {
      complexity: ['error', 20],
      eqeqeq: 'error',
      'max-depth': ['error', 3],
      'max-lines': ['error', 400],
      'max-lines-per-function': ['error', { max: 100, skipComments: true, skipBlankLines: true }],
      'no-console': 'error',
      'no-eval': 'error',
      'no-implied-eval': 'error',
      'no-var': 'error',
      'prefer-const': 'error',
      // No global state, and no HTML from text.
      'no-restricted-syntax': [
        'error',
        { selector: 'Program > VariableDeclaration[kind="let"]', message: 'A module has no state.' },
        { selector: 'Program > ExportNamedDeclaration > VariableDeclaration[kind="let"]', message: 'A module has no state.' },
        {
          selector: 'MemberExpression[property.name=/^(innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML)$/]',
          message: 'Make nodes.',
        },
      ],
    },
  },
  { files: ['**/*.mjs', '**/*.test.js', '**/eslint.config.js'], languageOptions: { globals: globals.node } },
];
