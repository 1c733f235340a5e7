// The classes of browsers for WebRTC that the TypeScript SDK looks for, in Node: `node --import ./webrtc_globals.mjs PROGRAM`.
import wrtc from '@roamhq/wrtc';

for (const name of ['MediaStream', 'RTCIceCandidate', 'RTCSessionDescription']) globalThis[name] = wrtc[name];
// The library lacks the form without an argument, which browsers have and the SDK uses to negotiate streams.
globalThis.RTCPeerConnection = class extends wrtc.RTCPeerConnection {
  async setLocalDescription(description) {
    const make = () => (this.signalingState === 'have-remote-offer' ? this.createAnswer() : this.createOffer());
    return super.setLocalDescription(description ?? (await make()));
  }
};
