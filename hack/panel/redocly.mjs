// Lints the OpenAPI document with all recommended rules of Redocly, each as an error.
import { createConfig, lint } from '@redocly/openapi-core';

const rules = {
  'info-license': 'off', // the repository has none
  // The only success of a WebSocket is 101; see spectral.yaml.
  'operation-2xx-response': 'off',
  // It does not follow x-client-message and x-close. Spectral's does.
  'no-unused-components': 'off',
};
const config = await createConfig({ extends: ['recommended-strict'], rules });
const problems = await lint({ ref: process.argv[2], config });
for (const { ruleId, message, location } of problems) {
  console.error(`${ruleId}: ${message} at ${location[0]?.pointer}`);
}
process.exit(problems.length === 0 ? 0 : 1);
