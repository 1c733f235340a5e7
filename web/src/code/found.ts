// Devices that discovery services of a machine suggest. A machine may answer anything: what is taken is bounded. Pure.

export interface Device {
  readonly name: string;
  readonly api: string;
  readonly model: string;
  readonly attributes: unknown;
}

export const MOST_DEVICES = 100;
const LONGEST = 16 * 1024; // characters of the attributes of one device
const NAME = /^[A-Za-z0-9][\w-]{0,59}$/;
const TRIPLE = /^[\w-]{1,60}:[\w-]{1,60}:[\w-]{1,60}$/;

/** What a machine says of a device. */
export interface Said {
  readonly name?: unknown;
  readonly api?: unknown;
  readonly type?: unknown;
  readonly model?: unknown;
  readonly attributes?: unknown;
}

/** Return the devices that can be entries of a configuration, at most MOST_DEVICES. */
export function devicesOf(said: readonly Said[]): Device[] {
  const devices: Device[] = [];
  for (const { name, api, type, model, attributes } of said.slice(0, 10 * MOST_DEVICES)) {
    if (devices.length === MOST_DEVICES) break;
    const full = typeof api === 'string' && api !== '' ? api : `rdk:component:${typeof type === 'string' ? type : ''}`;
    if (typeof name !== 'string' || !NAME.test(name) || typeof model !== 'string' || !TRIPLE.test(model) || !TRIPLE.test(full)) continue;
    const values = typeof attributes === 'object' && attributes !== null && !Array.isArray(attributes) ? attributes : {};
    if (JSON.stringify(values).length <= LONGEST) devices.push({ name, api: full, model, attributes: values });
  }
  return devices;
}
