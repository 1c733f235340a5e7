// Each method of DataClient.
import { refusal } from './refusal.mjs';

const SENSOR = 'rdk:component:sensor';
const at = (second) => new Date(Date.UTC(2026, 0, 1, 0, 0, second));
const ids = (found) => found.data.map((one) => one.metadata.binaryDataId);

export async function walkData(data, sdk, organization, part) {
  const found = {};
  await readings(data, sdk, found, organization, part);
  const files = await upload(data, sdk, found, part);
  await labels(data, sdk, found, part, files);
  await datasets(data, sdk, found, organization, files);
  await deletion(data, sdk, found, files);
  await unbuilt(data, sdk, found, organization, part);
  return found;
}

const filter = (data, options) => data.constructor.createFilter(options);

async function readings(data, sdk, found, organization, part) {
  const source = [part, 'air', SENSOR, 'Readings'];
  const uploaded = [20, 21, 22].map((t) => ({ readings: { t, ok: true, none: null } }));
  const times = uploaded.map((_, number) => [at(number), at(number + 0.5)]);
  const nothing = await data.getLatestTabularData(...source);
  found.tabularDataCaptureUpload = typeof (await data.tabularDataCaptureUpload(uploaded, part, SENSOR, 'air', 'Readings', times, ['lab']));
  const latest = await data.getLatestTabularData(...source);
  found.getLatestTabularData = [nothing, latest[0].toISOString(), latest[2]];
  const rows = await data.exportTabularData(...source);
  const some = await data.exportTabularData(...source, at(1), at(2));
  found.exportTabularData = [rows.map((one) => one.payload), some.length, rows[0].robotName, rows[0].tags];
  const wanted = filter(data, { componentName: 'air', tags: ['lab'] });
  const [all, sizes] = [[], []];
  for (let last = ''; ; ) {
    const page = await data.tabularDataByFilter(wanted, 2, undefined, last);
    sizes.push(page.data.length);
    if (page.data.length === 0) break;
    all.push(...page.data.map((one) => one.data.readings.t));
    last = page.last;
  }
  const counted = await data.tabularDataByFilter(wanted, undefined, undefined, '', true);
  found.tabularDataByFilter = [all, sizes, Number(counted.count)];
  found.tabularDataBySQL = await data.tabularDataBySQL(organization, "SELECT SUM(data.readings.t) AS sum FROM readings");
  found.tabularDataByMQL = await data.tabularDataByMQL(organization, [{ $match: { 'data.readings.t': { $gt: 20 } } }, { $count: 'n' }]);
  found.deleteTabularData = [Number(await data.deleteTabularData(organization, 0)), (await data.exportTabularData(...source)).length];
}

async function upload(data, sdk, found, part) {
  const times = (number) => [at(number), at(number)];
  const eye = [part, 'camera', 'eye', 'ReadImage', '.png'];
  const first = await data.binaryDataCaptureUpload(new Uint8Array([1, 2, 3]), ...eye, times(0), ['first']);
  const second = await data.binaryDataCaptureUpload(new Uint8Array([4]), ...eye, times(1), ['second']);
  const pages = [await data.binaryDataByFilter(undefined, 1, 1, '', true)];
  for (;;) {
    const page = await data.binaryDataByFilter(undefined, 1, 1, pages.at(-1).last, true);
    if (page.data.length === 0) break;
    pages.push(page);
  }
  found.binaryDataCaptureUpload = pages.map((page) => [...page.data[0].binary]);
  const lean = await data.binaryDataByFilter(filter(data, { componentName: 'eye', startTime: at(1) }), 10, 1, '', false);
  found.binaryDataByFilter = [ids(lean)[0] === second, lean.data[0].binary.length, Number(lean.count), lean.data[0].metadata.captureMetadata.mimeType];
  found.binaryDataByIds = (await data.binaryDataByIds([second, first], true)).map((one) => [...one.binary]);
  const url = await data.createBinaryDataSignedURL(first, 5);
  found.createBinaryDataSignedURL = new URL(url).pathname.includes(first);
  found.fileUpload = await streamed(data, part);
  return [first, second];
}

// Longer than a piece of the SDK; returns the stored size, or why the SDK's transport cannot send a stream.
async function streamed(data, part) {
  const sent = await refusal(data.fileUpload(new Uint8Array(data.constructor.UPLOAD_CHUNK_SIZE + 1), part, { fileName: 'long.bin' }));
  if (!('answered' in sent)) return sent;
  const [kept] = await data.binaryDataByIds([sent.answered], true);
  await data.deleteBinaryDataByIds([sent.answered]);
  return [kept.binary.length, kept.metadata.fileName];
}

async function labels(data, sdk, found, part, [first, second]) {
  const mine = filter(data, { partId: part });
  await data.addTagsToBinaryDataByIds(['good'], [first]);
  found.addTagsToBinaryDataByIds = ids(await data.binaryDataByFilter(filter(data, { tags: ['good'] }), 10, 1, '', false)).map((one) => one === first);
  await data.addTagsToBinaryDataByFilter(['seen'], mine);
  found.addTagsToBinaryDataByFilter = (await data.tagsByFilter()).sort();
  found.removeTagsFromBinaryDataByIds = Number(await data.removeTagsFromBinaryDataByIds(['good'], [first]));
  found.removeTagsFromBinaryDataByFilter = Number(await data.removeTagsFromBinaryDataByFilter(['seen'], mine));
  found.tagsByFilter = (await data.tagsByFilter(mine)).sort();
  const box = await data.addBoundingBoxToImageById(first, 'cup', 0.1, 0.1, 0.5, 0.5, 0.9);
  const boxes = async () =>
    (await data.binaryDataByIds([first]))[0].metadata.annotations.bboxes.map((one) => [one.label, one.xMaxNormalized, one.confidence ?? null]);
  found.addBoundingBoxToImageById = await boxes();
  await data.updateBoundingBox(first, box, 'mug', 0.1, 0.1, 0.6, 0.5, 0.8);
  found.updateBoundingBox = await boxes();
  found.boundingBoxLabelsByFilter = await data.boundingBoxLabelsByFilter();
  await data.removeBoundingBoxFromImageById(first, box);
  found.removeBoundingBoxFromImageById = await data.boundingBoxLabelsByFilter();
}

async function datasets(data, sdk, found, organization, [first, second]) {
  const dataset = await data.createDataset('cups', organization);
  const inside = async () => ids(await data.binaryDataByFilter(filter(data, { datasetId: dataset }), 10, 1, '', false));
  found.createDataset = typeof dataset;
  await data.addBinaryDataToDatasetByIds([first, second], dataset);
  found.addBinaryDataToDatasetByIds = (await inside()).length;
  await data.removeBinaryDataFromDatasetByIds([first], dataset);
  found.removeBinaryDataFromDatasetByIds = (await inside()).map((one) => one === second);
  await data.renameDataset(dataset, 'mugs');
  found.renameDataset = (await data.listDatasetsByIds([dataset]))[0].name;
  found.listDatasetsByIds = (await data.listDatasetsByIds([dataset])).map((one) => one.organizationId === organization);
  found.listDatasetsByOrganizationID = (await data.listDatasetsByOrganizationID(organization)).map((one) => one.name);
  await data.deleteDataset(dataset);
  found.deleteDataset = (await data.listDatasetsByOrganizationID(organization)).length;
}

async function deletion(data, sdk, found, [first, second]) {
  found.deleteBinaryDataByIds = [Number(await data.deleteBinaryDataByIds([first])), (await refusal(data.binaryDataByIds([first])))[0]];
  found.deleteBinaryDataByFilter = Number(await data.deleteBinaryDataByFilter(filter(data, { componentName: 'eye' })));
}

async function unbuilt(data, sdk, found, organization, part) {
  found.configureDatabaseUser = await refusal(data.configureDatabaseUser(organization, 'Secret12'));
  found.getDatabaseConnection = await refusal(data.getDatabaseConnection(organization));
  found.createIndex = await refusal(data.createIndex(organization, 1, { keys: { a: 1 } }));
  found.listIndexes = await refusal(data.listIndexes(organization, 1));
  found.deleteIndex = await refusal(data.deleteIndex(organization, 1, 'a'));
  found.listDataPipelines = await refusal(data.listDataPipelines(organization));
  found.getDataPipeline = await refusal(data.getDataPipeline('x'));
  found.createDataPipeline = await refusal(data.createDataPipeline(organization, 'x', [{ $match: { a: 1 } }], '* * * * *', false));
  found.deleteDataPipeline = await refusal(data.deleteDataPipeline('x'));
  found.listDataPipelineRuns = await refusal(data.listDataPipelineRuns('x'));
}
