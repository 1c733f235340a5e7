// The official TypeScript SDK against a cloud, unmodified: tier A of AppService, data, datasets, history, logs, tail, keys.
// Usage: node cloud.mjs http://localhost:PORT KEY_ID KEY ORGANIZATION LOCATION PART; prints one JSON object.
import { Struct, createViamClient } from '@viamrobotics/sdk';
import { walk } from './walk.mjs';

const [serviceHost, authEntity, payload, ...places] = process.argv.slice(2);
const client = await createViamClient({ serviceHost, credentials: { type: 'api-key', authEntity, payload } });
const number = (_, value) => (typeof value === 'bigint' ? Number(value) : value);
console.log(JSON.stringify(await walk(client, Struct, ...places), number));
process.exit(0);
