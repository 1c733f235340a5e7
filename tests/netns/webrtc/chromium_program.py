"""The unmodified TypeScript SDK in Chromium: `... FOLDER CLOUD HOST KEY_ID KEY` prints a result."""

from __future__ import annotations

import http.server
import json
import sys
import threading
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import trio

from tests.e2e.browser.chromium import browser
from tests.e2e.typescript import test_cloud

PAGE = """<!doctype html><title>WebRTC</title><script type="module">
import * as sdk from '/sdk.js';
const [signalingAddress, host, authEntity, payload] = WORDS;
const result = document.createElement('pre');
result.id = 'result';
try {
  const begin = performance.now();
  const robot = await sdk.createRobotClient({
    host, signalingAddress, credentials: { type: 'api-key', authEntity, payload }, noReconnect: true,
  });
  const connected = performance.now() - begin;
  const sensor = new sdk.SensorClient(robot, 'a'), times = [];
  let readings;
  for (let number = 0; number < 100; number += 1) {
    const start = performance.now();
    readings = await sensor.getReadings();
    times.push(performance.now() - start);
  }
  times.sort((a, b) => a - b);
  const motor = new sdk.MotorClient(robot, 'wheel');
  await motor.setPower(0.25);
  const powered = await motor.isPowered();
  await motor.stop();
  let error;
  try {
    await new sdk.MotorClient(robot, 'missing').getPosition();
  } catch (caught) {
    error = `${caught}`;
  }
  const stream = await new sdk.StreamClient(robot).getStream('eye');
  const video = document.createElement('video');
  Object.assign(video, { srcObject: stream, muted: true });
  document.body.append(video);
  await video.play();
  while (video.getVideoPlaybackQuality().totalVideoFrames < 10) {
    await new Promise((resolve) => video.requestVideoFrameCallback(resolve));
  }
  const shown = [video.videoWidth, video.videoHeight];
  const names = (await robot.resourceNames()).map(({ name }) => name);
  const channel = robot.peerConn?.connectionState ?? 'none';
  await robot.disconnect();
  const figures = { connected, p50: times[50], p99: times[98] };
  result.textContent = JSON.stringify({ figures, readings, powered, error, names, channel, shown }, (_, value) =>
    typeof value === 'bigint' ? Number(value) : value);
} catch (error) {
  result.textContent = JSON.stringify({ failed: `${error} ${error.stack}` });
}
document.body.append(result);
</script><body>"""


class _Pages(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        pass


async def main(folder: Path, cloud: str, *words: str) -> None:
    """Serve the page here, and print what it shows."""
    (folder / "index.html").write_text(PAGE.replace("WORDS", json.dumps([cloud, *words])))
    (folder / "sdk.js").write_bytes(test_cloud.SDK.read_bytes())
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Pages, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        async with browser(folder, reachable=[str(urlsplit(cloud).hostname)]) as page:
            page.expect("404|not_found|favicon")
            await page.goto(f"http://localhost:{server.server_port}/index.html")
            print(await page.until_text("{", "#result", limit=60))
        server.shutdown()


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]), *sys.argv[2:])
