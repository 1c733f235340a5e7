// Sound between a browser and a machine, as samples of 16 bits, little-endian, interleaved by channel.

const FULL = 32_768; // a sample of 16 bits at full level

/** Return the samples of each channel, from -1 to 1; bytes of an incomplete frame at the end are left out. */
export function channelsOf(data: Uint8Array, channels: number): Float32Array<ArrayBuffer>[] {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const frames = Math.floor(data.byteLength / 2 / channels);
  return Array.from({ length: channels }, (_, channel) =>
    Float32Array.from({ length: frames }, (_, frame) => view.getInt16(2 * (frame * channels + channel), true) / FULL));
}

/** Return samples from -1 to 1 of each channel as bytes; louder ones are clipped. */
export function bytesOf(channels: readonly Float32Array[]): Uint8Array<ArrayBuffer> {
  const frames = channels[0]?.length ?? 0;
  const view = new DataView(new ArrayBuffer(2 * frames * channels.length));
  channels.forEach((samples, channel) => {
    samples.forEach((sample, frame) => {
      view.setInt16(2 * (frame * channels.length + channel), Math.max(-FULL, Math.min(FULL - 1, Math.round(sample * FULL))), true);
    });
  });
  return new Uint8Array(view.buffer);
}

/** Return the level of samples from 0 to 1: the root of their mean square. */
export function level(samples: Float32Array): number {
  if (samples.length === 0) return 0;
  return Math.sqrt(samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length);
}

/** Decode a sound file or a recording, and return its samples at `rate` with at most `channels` channels. */
export async function decoded(data: ArrayBuffer, rate: number, channels: number): Promise<Float32Array[]> {
  const sound = await new OfflineAudioContext(1, 1, rate).decodeAudioData(data); // it resamples
  return Array.from({ length: Math.min(channels, sound.numberOfChannels) }, (_, channel) => sound.getChannelData(channel));
}
