// The official TypeScript SDK in Node over gRPC-Web, unmodified: prints one JSON object.
// Usage: node machine.mjs http://localhost:PORT [KEY_ID KEY]
import { MotorClient, RobotClient, SensorClient } from '@viamrobotics/sdk';

const [host, authEntity, payload] = process.argv.slice(2);
const robot = new RobotClient();
await robot.dial({
  host,
  noReconnect: true,
  ...(payload ? { credentials: { type: 'api-key', authEntity, payload } } : {}),
});
const out = {};
out.names = (await robot.resourceNames()).map((name) => `${name.namespace}:${name.type}:${name.subtype}/${name.name}`);
out.readings = await new SensorClient(robot, 'sensor').getReadings();
const motor = new MotorClient(robot, 'motor');
await motor.resetZeroPosition(0);
await motor.goFor(600, 1);
out.position = await motor.getPosition();
await motor.setPower(0.25);
out.powered = await motor.isPowered();
await motor.stop();
out.moving = await motor.isMoving();
try {
  await new MotorClient(robot, 'missing').getPosition();
} catch (error) {
  out.error = { code: error.code, message: error.rawMessage ?? error.message };
}
out.version = await robot.getVersion();
console.log(JSON.stringify(out));
process.exit(0);
