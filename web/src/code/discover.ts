// Asks the discovery services of a running machine, with the calls and the permissions of its page Control. Loaded when it
// is asked for, because the SDK is large.
import { DiscoveryClient } from '@viamrobotics/sdk';
import { Link } from '../control/link';
import { devicesOf, type Device, type Said } from './found';

const SERVICES = 8; // discovery services that are asked

/** Return what is connected to a machine; rejects with the reason if that is not known. */
export async function discover(part: string, token: string): Promise<Device[]> {
  const link = await Link.open({ part, token, webrtc: false }, () => undefined);
  try {
    const { resources } = await link.resources();
    const services = resources.filter((each) => each.api === 'service:discovery').slice(0, SERVICES);
    if (services.length === 0) throw new Error('The machine has no discovery service. Add one, save, and look again.');
    const said: Said[] = [];
    for (const { name } of services) {
      for (const each of await new DiscoveryClient(link.client, name).discoverResources()) {
        said.push({ name: each.name, api: each.api, type: each.type, model: each.model, attributes: each.attributes?.toJson() });
      }
    }
    return devicesOf(said);
  } finally {
    await link.close();
  }
}
