// Each method of AppClient.
import { refusal } from './refusal.mjs';

export async function walkApp(app, sdk, organization, location, talker, second) {
  const found = {};
  await people(app, sdk, found, organization, location);
  await places(app, found, organization, location, second);
  const { robot, part } = await machines(app, found, organization, location);
  await configuration(app, sdk, found, part);
  await logs(app, found, part, talker);
  await fragments(app, sdk, found, organization, robot, part);
  await keys(app, sdk, found, organization, location, robot);
  await registry(app, sdk, found, organization);
  await unbuilt(app, found, organization);
  return { found, part };
}

// Anna is a member, Ben is invited.
async function people(app, sdk, found, organization, location) {
  const members = async () => {
    const { members, invites } = await app.listOrganizationMembers(organization);
    return [members.flatMap((one) => one.emails), invites.map((one) => one.email)];
  };
  const role = (type, role, id) =>
    new sdk.appApi.Authorization({
      authorizationType: 'role',
      authorizationId: `${type}_${role}`,
      resourceType: type,
      resourceId: id,
      organizationId: organization,
    });
  const roles = (invite) => invite.authorizations.map((one) => one.authorizationId);
  const ben = 'ben@example.com';
  const anna = await app.getUserIDByEmail('anna@example.com');
  found.getUserIDByEmail = (await app.listOrganizationMembers(organization)).members.map((one) => one.userId === anna);
  found.listOrganizationsByUser = (await app.listOrganizationsByUser(anna)).map((one) => one.orgName);
  const guard = role('organization', 'operator', organization);
  found.createOrganizationInvite = roles(await app.createOrganizationInvite(organization, ben, [guard], false));
  const changed = await app.updateOrganizationInviteAuthorizations(organization, ben, [role('location', 'owner', location)], [guard]);
  found.updateOrganizationInviteAuthorizations = roles(changed);
  found.resendOrganizationInvite = (await app.resendOrganizationInvite(organization, ben)).email;
  found.listOrganizationMembers = await members();
  await app.deleteOrganizationInvite(organization, ben);
  found.deleteOrganizationInvite = await members();
  await app.deleteOrganizationMember(organization, anna);
  found.deleteOrganizationMember = await members();
}

async function sharing(app, found, location, second) {
  const access = async () => (await app.getOrganizationsWithAccessToLocation(location)).map((one) => one.name).sort();
  found.getOrganizationsWithAccessToLocation = await access();
  await app.shareLocation(second, location);
  found.shareLocation = await access();
  await app.unshareLocation(second, location);
  found.unshareLocation = await access();
  const ids = (auth) => auth.secrets.map((one) => one.id);
  const before = ids(await app.locationAuth(location));
  const made = ids(await app.createLocationSecret(location));
  found.locationAuth = ids(await app.locationAuth(location)).every((one) => made.includes(one));
  found.createLocationSecret = made.length - before.length;
  await app.deleteLocationSecret(location, made.find((one) => !before.includes(one)));
  found.deleteLocationSecret = ids(await app.locationAuth(location)).length - before.length;
}

async function places(app, found, organization, location, second) {
  found.listOrganizations = (await app.listOrganizations()).map((one) => one.id === organization);
  found.getOrganization = (await app.getOrganization(organization)).name;
  const free = await app.getOrganizationNamespaceAvailability('acme');
  const named = await app.updateOrganization(organization, 'House', 'acme');
  found.updateOrganization = [named.name, named.publicNamespace];
  found.getOrganizationNamespaceAvailability = [free, await app.getOrganizationNamespaceAvailability('acme')];
  await app.updateOrganizationMetadata(organization, { floors: 2, rooms: ['hall', null] });
  found.getOrganizationMetadata = await app.getOrganizationMetadata(organization);
  await app.updateOrganizationMetadata(organization, {});
  found.updateOrganizationMetadata = await app.getOrganizationMetadata(organization);
  const hall = await app.createLocation(organization, 'hall', location);
  found.createLocation = [hall.name, hall.parentLocationId === location];
  const moved = await app.updateLocation(hall.id, 'yard', '');
  found.updateLocation = [moved.name, moved.parentLocationId];
  found.listLocations = (await app.listLocations(organization)).map((one) => one.name).sort();
  found.getLocation = (await app.getLocation(hall.id)).primaryOrgIdentity.name;
  await sharing(app, found, hall.id, second);
  await app.updateLocationMetadata(hall.id, { roof: true });
  found.updateLocationMetadata = await app.getLocationMetadata(hall.id);
  found.getLocationMetadata = await app.getLocationMetadata(location);
  await app.deleteLocation(hall.id);
  found.deleteLocation = (await refusal(app.getLocation(hall.id)))[0];
}

async function machines(app, found, organization, location) {
  const inner = await app.createLocation(organization, 'inner', location);
  const robot = await app.newRobot(inner.id, 'rover');
  found.newRobot = (await app.listRobots(inner.id)).map((one) => one.id === robot);
  const changed = await app.updateRobot(robot, location, 'tractor');
  found.updateRobot = [changed.name, changed.location === location];
  found.listRobots = (await app.listRobots(location)).map((one) => one.name).sort();
  found.getRobot = (await app.getRobot(robot)).name;
  const second = await app.newRobot(inner.id, 'digger');
  await app.deleteRobot(second);
  found.deleteRobot = (await app.listRobots(inner.id)).length;
  await app.deleteLocation(inner.id);
  await app.updateRobotMetadata(robot, { colour: 'red' });
  found.updateRobotMetadata = await app.getRobotMetadata(robot);
  await app.updateRobotMetadata(robot, { n: 1 });
  found.getRobotMetadata = await app.getRobotMetadata(robot);

  const [main] = await app.getRobotParts(robot);
  found.getRobotParts = [main.mainPart, main.robot === robot, main.locationId === location];
  const arm = await app.newRobotPart(robot, 'arm');
  await app.markPartAsMain(arm);
  const parts = await app.getRobotParts(robot);
  found.newRobotPart = parts.map((one) => one.name);
  found.markPartAsMain = parts.filter((one) => one.mainPart).map((one) => one.name);
  await app.markPartAsMain(main.id);
  await app.updateRobotPartMetadata(arm, { reach: 0.5 });
  found.updateRobotPartMetadata = await app.getRobotPartMetadata(arm);
  found.getRobotPartMetadata = await app.getRobotPartMetadata(main.id);
  await app.deleteRobotPart(arm);
  found.deleteRobotPart = (await app.getRobotParts(robot)).length;
  const { secrets } = await app.createRobotPartSecret(main.id);
  found.createRobotPartSecret = new Set(secrets.map((one) => one.secret)).size;
  await app.deleteRobotPartSecret(main.id, secrets[0].id);
  const left = (await app.getRobotPart(main.id)).part.secrets;
  found.deleteRobotPartSecret = left.map((one) => one.id === secrets[1].id);
  found.getRobotPartByNameAndLocation = (await app.getRobotPartByNameAndLocation(main.name, location)).part.id === main.id;
  found.markPartForRestart = await app.markPartForRestart(main.id).then(() => 'marked');
  const fleet = await app.listMachineSummaries(organization, [], [location]);
  found.listMachineSummaries = fleet.flatMap((one) => one.machineSummaries.map((each) => each.machineName)).sort();
  return { robot, part: main.id };
}

async function configuration(app, sdk, found, part) {
  const speeds = (config) => config.components?.[0].attributes.max_rpm ?? null;
  const config = (speed) =>
    sdk.Struct.fromJson({ components: [{ name: 'wheel', api: 'rdk:component:motor', model: 'fake', attributes: { max_rpm: speed } }] });
  await app.updateRobotPart(part, 'main', config(10));
  const saved = await app.updateRobotPart(part, 'main', config(20));
  found.updateRobotPart = [saved.name, speeds(saved.robotConfig.toJson())];
  const got = await app.getRobotPart(part);
  found.getRobotPart = [JSON.parse(got.configJson), speeds(got.part.robotConfig.toJson())];
  const history = await app.getRobotPartHistory(part);
  found.getRobotPartHistory = history.map((one) => speeds(one.old.robotConfig.toJson()));
  const reverted = await app.updateRobotPart(part, 'main', history[0].old.robotConfig);
  found.getRobotPartHistory.push(speeds(reverted.robotConfig.toJson()));
}

async function logs(app, found, part, talker) {
  const queue = [];
  app.tailRobotPartLogs(talker, queue, 'lou', true).catch(() => {});
  while (queue.length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
  found.tailRobotPartLogs = [queue[0].level, queue[0].message];
  const { logs: loud, nextPageToken } = await app.getRobotPartLogs(talker, 'lou', ['error']);
  const none = await app.getRobotPartLogs(talker, 'lou', ['info']);
  found.getRobotPartLogs = [loud[0].message, typeof nextPageToken, none.logs.length];
}

async function fragments(app, sdk, found, organization, robot, part) {
  const config = (speed) =>
    sdk.Struct.fromJson({ components: [{ name: 'wheel', api: 'rdk:component:motor', model: 'fake', attributes: { max_rpm: speed } }] });
  const speed = (one) => one.fragment.toJson().components[0].attributes.max_rpm;
  const made = await app.createFragment(organization, 'drive', config({ $variable: { name: 'speed' } }));
  found.createFragment = speed(made);
  const changed = await app.updateFragment(made.id, 'drives', config(40), false);
  found.updateFragment = [changed.name, changed.revision];
  found.getFragment = speed(await app.getFragment(made.id));
  found.listFragments = (await app.listFragments(organization, false)).map((one) => one.name);
  await app.updateRobotPart(part, 'main', sdk.Struct.fromJson({ fragments: [{ id: made.id, prefix: 'left' }] }));
  found.listMachineFragments = (await app.listMachineFragments(robot)).map((one) => one.id === made.id);
  const used = await refusal(app.deleteFragment(made.id));
  await app.updateRobotPart(part, 'main', sdk.Struct.fromJson({ components: [] }));
  await app.deleteFragment(made.id);
  found.deleteFragment = [used[0], (await app.listFragments(organization, false)).length];
}

async function keys(app, sdk, found, organization, location, robot) {
  const at = (role, type, id) => ({ authorizationType: 'role', authorizationId: `${type}_${role}`, resourceType: type, resourceId: id });
  const key = await app.createKey([at('operator', 'organization', organization)], 'guard');
  const listed = await app.listKeys(organization);
  found.createKey = [typeof key.key, listed.some((one) => one.apiKey.id === key.id)];
  found.listKeys = listed.map((one) => [one.apiKey.name, one.apiKey.key]).sort();
  const roles = async () =>
    (await app.listAuthorizations(organization)).filter((one) => one.identityId === key.id).map((one) => one.authorizationId).sort();
  await app.addRole(organization, key.id, 'operator', 'robot', robot);
  found.addRole = await roles();
  found.getRobotAPIKeys = (await app.getRobotAPIKeys(robot)).map((one) => one.apiKey.id === key.id);
  const of = (authorization) => new sdk.appApi.Authorization({ ...authorization, identityId: key.id, organizationId: organization });
  await app.changeRole(of(at('operator', 'robot', robot)), of(at('owner', 'location', location)));
  found.changeRole = await roles();
  found.listAuthorizations = (await app.listAuthorizations(organization, [location])).map((one) => one.authorizationId);
  await app.removeRole(organization, key.id, 'owner', 'location', location);
  found.removeRole = await roles();
  const permissions = ['control_robot', 'configure_robot', 'no_such_thing'];
  const allowed = await app.checkPermissions([{ resourceType: 'organization', resourceId: organization, permissions }]);
  found.checkPermissions = allowed.map((one) => one.permissions);
  const copy = await app.createKeyFromExistingKeyAuthorizations(key.id);
  found.createKeyFromExistingKeyAuthorizations = copy.id !== key.id && copy.key !== key.key;
  const rotated = await app.rotateKey(key.id);
  found.rotateKey = [rotated.id === key.id, rotated.key !== key.key];
  await app.deleteKey(key.id);
  await app.deleteKey(copy.id);
  found.deleteKey = (await app.listKeys(organization)).map((one) => one.apiKey.name);
}

async function registry(app, sdk, found, organization) {
  const [MODEL, MODULE, PRIVATE, PUBLIC] = [2, 3, 1, 2];
  await app.createRegistryItem(organization, 'cats', MODEL);
  await app.updateRegistryItem('acme:cats', MODEL, 'knows cats', PRIVATE);
  const item = await app.getRegistryItem('acme:cats');
  found.createRegistryItem = [item.itemId, item.type];
  found.updateRegistryItem = [item.description, item.visibility];
  found.getRegistryItem = [item.name, (await refusal(app.getRegistryItem('acme:dogs')))[0]];
  const made = await app.createModule(organization, 'smooth');
  found.createModule = made.moduleId;
  const model = new sdk.appApi.Model({ api: 'rdk:component:sensor', model: 'acme:smooth:mean' });
  const page = await app.updateModule(made.moduleId, PUBLIC, 'https://example.com', 'smooths', [model], 'run.sh');
  found.updateModule = page.endsWith('/modules/acme:smooth');
  const module = await app.getModule(made.moduleId);
  found.getModule = [module.description, module.visibility, module.entrypoint, module.models.map((one) => one.model)];
  found.listModules = (await app.listModules(organization)).map((one) => one.moduleId);
  const both = await app.listRegistryItems(organization, [], [], [], []);
  const searched = await app.listRegistryItems(organization, [MODULE], [], [], [], 'smooths');
  found.listRegistryItems = [both.map((one) => one.itemId), searched.map((one) => one.itemId)];
  await app.deleteRegistryItem('acme:cats');
  await app.deleteRegistryItem(made.moduleId);
  found.deleteRegistryItem = (await app.listRegistryItems(organization, [], [], [], [])).map((one) => one.itemId);
}

async function unbuilt(app, found, organization) {
  found.createOrganization = await refusal(app.createOrganization('Second'));
  found.getRoverRentalRobots = await refusal(app.getRoverRentalRobots(organization));
  found.getAppContent = await refusal(app.getAppContent('acme', 'x'));
  found.getAppBranding = await refusal(app.getAppBranding('acme', 'x'));
}

// The organization is deleted last, with the key of this walk. The program of the test that logs must end first.
export async function leave(app, organization) {
  const early = await refusal(app.deleteOrganization(organization));
  for (const location of await app.listLocations(organization)) {
    for (const one of await app.listRobots(location.id)) await app.deleteRobot(one.id);
    await app.deleteLocation(location.id);
  }
  await app.deleteOrganization(organization);
  const late = await refusal(app.listOrganizations()); // checks only the key, without an organization
  return { deleteOrganization: [early[0], late[0]] };
}
