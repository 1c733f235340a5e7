// The official TypeScript SDK against a cloud, unmodified: each method of AppClient, DataClient and MlTrainingClient.
// Usage: node cloud.mjs web|grpc http://localhost:PORT KEY_ID KEY ORGANIZATION LOCATION PART SECOND; prints one JSON object.
import { createGrpcTransport } from '@connectrpc/connect-node';
import * as sdk from '@viamrobotics/sdk';
import { walk } from './walk.mjs';

const [transport, serviceHost, authEntity, payload, ...places] = process.argv.slice(2);
// The SDK's own hook for transports: gRPC over HTTP/2 sends streams, fetch does not.
if (transport === 'grpc') globalThis.VIAM = { GRPC_TRANSPORT_FACTORY: (options) => createGrpcTransport({ httpVersion: '2', ...options }) };
const client = await sdk.createViamClient({ serviceHost, credentials: { type: 'api-key', authEntity, payload } });
const number = (_, value) => (typeof value === 'bigint' ? Number(value) : value);
console.log(JSON.stringify(await walk(client, sdk, ...places), number));
process.exit(0);
