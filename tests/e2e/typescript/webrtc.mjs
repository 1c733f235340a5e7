// The official TypeScript SDK in Node over WebRTC, unmodified: prints one JSON object.
// Usage: node webrtc.mjs SIGNALING_ADDRESS HOST KEY_ID KEY
import wrtc from '@roamhq/wrtc';
import './webrtc_globals.mjs';

const sdk = await import('@viamrobotics/sdk'); // after the globals of browsers that it looks for
const { RTCAudioSink, RTCVideoSink } = wrtc.nonstandard;

// Count rising zero crossings in a second of sound, again until they are those of a tone.
const pitchOf = (track, low, high) =>
  new Promise((resolve) => {
    const sink = new RTCAudioSink(track);
    let [last, rising, frames] = [0, 0, 0];
    sink.ondata = ({ samples, sampleRate, channelCount }) => {
      for (let index = 0; index < samples.length; index += channelCount) {
        if (last < 0 && samples[index] >= 0) rising += 1;
        last = samples[index];
      }
      frames += samples.length / channelCount;
      if (frames < sampleRate) return;
      const pitch = (rising * sampleRate) / frames;
      [rising, frames] = [0, 0];
      if (pitch < low || pitch > high) return;
      sink.stop();
      resolve(pitch);
    };
  });

const sizeOf = (track) =>
  new Promise((resolve) => {
    const sink = new RTCVideoSink(track);
    let count = 0;
    sink.onframe = ({ frame }) => {
      count += 1;
      if (count < 10) return;
      sink.stop();
      resolve([frame.width, frame.height]);
    };
  });

const [signalingAddress, host, authEntity, payload] = process.argv.slice(2);
const begin = performance.now();
const credentials = { type: 'api-key', authEntity, payload };
const robot = await sdk.createRobotClient({ host, signalingAddress, credentials, noReconnect: true });
const connected = performance.now() - begin;
const sensor = new sdk.SensorClient(robot, 'a');
const times = [];
const out = {};
for (let number = 0; number < 100; number += 1) {
  const start = performance.now();
  out.readings = await sensor.getReadings();
  times.push(performance.now() - start);
}
times.sort((a, b) => a - b);
out.figures = { connected, p50: times[50], p99: times[98] };
const motor = new sdk.MotorClient(robot, 'wheel');
await motor.setPower(0.25);
out.powered = await motor.isPowered();
await motor.stop();
try {
  await new sdk.MotorClient(robot, 'missing').getPosition();
} catch (error) {
  out.error = `${error}`;
}
out.state = robot.peerConn?.connectionState ?? 'none';
const streams = new sdk.StreamClient(robot);
out.shown = await sizeOf((await streams.getStream('eye')).getVideoTracks()[0]);
out.pitch = await pitchOf((await streams.getStream('ears')).getAudioTracks()[0], 320, 340);
out.names = (await robot.resourceNames()).map(({ name }) => name);
await robot.disconnect();
console.log(JSON.stringify(out, (_, value) => (typeof value === 'bigint' ? Number(value) : value)));
process.exit(0); // the library of the peer connection keeps threads
