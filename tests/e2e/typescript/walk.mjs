// Calls of a user of the TypeScript SDK to a cloud; the same in Node and in a page. `sdk` is the SDK as a module.
// Returns a value that shows the effect of each method of the three clients, by the name of the method.
import { walkApp, leave } from './walk_app.mjs';
import { walkData } from './walk_data.mjs';
import { walkTraining } from './walk_training.mjs';

// The published call of each method of a client, according to its source.
const sources = (client) => {
  const methods = Object.getPrototypeOf(client);
  const names = Object.getOwnPropertyNames(methods).filter((name) => name !== 'constructor');
  return Object.fromEntries(names.map((name) => [name, /this\.\w*[cC]lient\.(\w+)/.exec(methods[name])[1]]));
};

export async function walk(client, sdk, organization, location, talker, second) {
  const { appClient: app, dataClient: data, mlTrainingClient: training } = client;
  const made = await walkApp(app, sdk, organization, location, talker, second);
  const dataFound = await walkData(data, sdk, organization, made.part);
  const trained = await walkTraining(client, sdk, organization, made.part);
  const appFound = { ...made.found, ...(await leave(app, organization)) };
  const methods = { app: sources(app), data: sources(data), training: sources(training) };
  return { app: appFound, data: dataFound, training: trained, methods };
}
