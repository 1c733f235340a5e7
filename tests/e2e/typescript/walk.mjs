// What a user of the TypeScript SDK does with a cloud; the same in Node and in a page. Returns what was found.
// `talker` is a part that logs an error again and again.
export async function walk(client, Struct, organization, location, talker) {
  const app = client.appClient;
  const data = client.dataClient;
  const out = {};
  out.organizations = (await app.listOrganizations()).map((one) => one.id);
  out.organization = (await app.getOrganization(organization)).name;
  const inner = await app.createLocation(organization, 'hall', location);
  out.locations = (await app.listLocations(organization)).map((one) => one.name);
  out.parent = (await app.getLocation(inner.id)).parentLocationId;

  const machine = await app.newRobot(inner.id, 'rover');
  await app.updateRobot(machine, inner.id, 'rover two');
  out.machine = (await app.getRobot(machine)).name;
  out.machines = (await app.listRobots(inner.id)).map((one) => one.id === machine);
  const [part] = await app.getRobotParts(machine);
  const arm = await app.newRobotPart(machine, 'arm');
  await app.markPartAsMain(arm);
  out.main = (await app.getRobotParts(machine)).filter((one) => one.mainPart).map((one) => one.name);
  await app.markPartAsMain(part.id);
  await app.deleteRobotPart(arm);

  const config = (speed) =>
    Struct.fromJson({ components: [{ name: 'wheel', api: 'rdk:component:motor', model: 'fake', attributes: { max_rpm: speed } }] });
  await app.updateRobotPart(part.id, 'main', config(10));
  await app.updateRobotPart(part.id, 'main', config(20));
  out.config = JSON.parse((await app.getRobotPart(part.id)).configJson);
  const history = await app.getRobotPartHistory(part.id);
  out.history = history.map((one) => one.old.robotConfig.toJson().components?.[0].attributes.max_rpm ?? null);
  await app.updateRobotPart(part.id, 'main', history[0].old.robotConfig);
  out.reverted = JSON.parse((await app.getRobotPart(part.id)).configJson).components[0].attributes.max_rpm;
  await app.markPartForRestart(part.id);
  out.logs = (await app.getRobotPartLogs(part.id)).logs.length;
  const queue = [];
  app.tailRobotPartLogs(talker, queue, undefined, true).catch(() => {});
  while (queue.length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
  out.tail = queue[0].message;
  out.filtered = (await app.getRobotPartLogs(talker, 'lou', ['error'])).logs[0].message;
  out.summaries = (await app.listMachineSummaries(organization)).flatMap((one) => one.machineSummaries.map((each) => each.machineName)).sort();

  const fragment = await app.createFragment(organization, 'drive', config(30));
  await app.updateFragment(fragment.id, 'drive', config(40));
  out.fragments = (await app.listFragments(organization)).map((one) => one.name);
  out.fragment = (await app.getFragment(fragment.id)).fragment.toJson().components[0].attributes.max_rpm;
  await app.deleteFragment(fragment.id);

  const grant = { authorizationType: 'role', authorizationId: 'organization_operator', resourceType: 'organization', resourceId: organization };
  const key = await app.createKey([grant], 'guard');
  out.keys = (await app.listKeys(organization)).map((one) => one.apiKey.name).sort();
  const rotated = await app.rotateKey(key.id);
  out.rotated = rotated.key !== key.key;
  await app.deleteKey(key.id);
  out.metadata = await app.updateRobotMetadata(machine, { colour: 'red' }).then(() => app.getRobotMetadata(machine));
  out.permissions = (await app.checkPermissions([{ resourceType: 'organization', resourceId: organization, permissions: ['control_robot'] }])).length;

  const now = new Date();
  await data.tabularDataCaptureUpload([{ temperature: 21.5 }], part.id, 'rdk:component:sensor', 'air', 'Readings', [[now, now]], ['first']);
  out.latest = (await data.getLatestTabularData(part.id, 'air', 'rdk:component:sensor', 'Readings'))[2];
  out.exported = (await data.exportTabularData(part.id, 'air', 'rdk:component:sensor', 'Readings')).map((one) => one.payload);
  const picture = await data.binaryDataCaptureUpload(new Uint8Array([1, 2, 3]), part.id, 'camera', 'cam', 'ReadImage', '.png', [now, now], ['first']);
  const found = await data.binaryDataByFilter(undefined, 10);
  out.binary = found.data.map((one) => one.metadata.binaryDataId === picture);
  out.bytes = [...(await data.binaryDataByIds([picture], true))[0].binary];
  await data.addTagsToBinaryDataByIds(['second'], [picture]);
  out.tags = (await data.tagsByFilter()).sort();
  const box = await data.addBoundingBoxToImageById(picture, 'cup', 0.1, 0.1, 0.5, 0.5);
  out.labels = await data.boundingBoxLabelsByFilter();
  await data.removeBoundingBoxFromImageById(picture, box);
  const dataset = await data.createDataset('cups', organization);
  await data.addBinaryDataToDatasetByIds([picture], dataset);
  await data.renameDataset(dataset, 'mugs');
  out.datasets = (await data.listDatasetsByOrganizationID(organization)).map((one) => one.name);
  await data.deleteDataset(dataset);
  out.deleted = await data.deleteBinaryDataByIds([picture]);
  try {
    await app.getRobot('00000000-0000-0000-0000-000000000000');
  } catch (error) {
    out.error = error.code;
  }
  try {
    await app.listOrganizationsByUser('nobody');
  } catch (error) {
    out.unbuilt = error.code;
  }
  await app.deleteRobot(machine);
  await app.deleteLocation(inner.id);
  return out;
}
