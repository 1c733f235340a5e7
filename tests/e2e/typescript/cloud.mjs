// The official TypeScript SDK against a cloud, unmodified: each method of AppClient and DataClient.
// Usage: node cloud.mjs http://localhost:PORT KEY_ID KEY ORGANIZATION LOCATION PART SECOND; prints one JSON object.
import * as sdk from '@viamrobotics/sdk';
import { walk } from './walk.mjs';

const [serviceHost, authEntity, payload, ...places] = process.argv.slice(2);
const client = await sdk.createViamClient({ serviceHost, credentials: { type: 'api-key', authEntity, payload } });
const number = (_, value) => (typeof value === 'bigint' ? Number(value) : value);
console.log(JSON.stringify(await walk(client, sdk, ...places), number));
process.exit(0);
