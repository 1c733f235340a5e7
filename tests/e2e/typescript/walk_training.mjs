// Each method of MlTrainingClient. `organization:lines` is a training script.
import { refusal } from './refusal.mjs';

const LABELS = ['red', 'blue'];
const EACH = 10; // pictures of each label

export async function walkTraining(client, sdk, organization, part) {
  const { mlTrainingClient: training, dataClient: data } = client;
  const { ModelType, TrainingStatus } = sdk;
  const results = {};
  const { dataset, files } = await labelled(data, organization, part);
  const script = `${organization}:lines`;
  const custom = await training.submitCustomTrainingJob(organization, dataset, script, '1', 'scripted', '1');
  const type = ModelType.SINGLE_LABEL_CLASSIFICATION;
  const job = await training.submitTrainingJob(organization, dataset, 'colors', '1', type, LABELS);
  await training.cancelTrainingJob(job);
  const canceled = await ended(training, job, TrainingStatus);
  results.submitTrainingJob = [canceled.modelName, canceled.modelVersion, canceled.modelType === type, canceled.tags, canceled.datasetId === dataset];
  const again = await refusal(training.cancelTrainingJob(job));
  results.cancelTrainingJob = [TrainingStatus[canceled.status], again[0]];
  const done = await ended(training, custom, TrainingStatus);
  results.getTrainingJob = [TrainingStatus[done.status], done.errorStatus?.message ?? ''];
  results.submitCustomTrainingJob = [done.isCustomJob, done.registryItemVersion, done.syncedModelId === `${organization}/scripted`];
  const ids = (jobs) => jobs.map(({ id }) => [job, custom].indexOf(id));
  results.listTrainingJobs = [
    ids(await training.listTrainingJobs(organization, TrainingStatus.UNSPECIFIED)),
    ids(await training.listTrainingJobs(organization, TrainingStatus.COMPLETED)),
  ];
  await training.deleteCompletedTrainingJob(job);
  await training.deleteCompletedTrainingJob(custom);
  results.deleteCompletedTrainingJob = [
    (await refusal(training.getTrainingJob(job)))[0],
    (await training.listTrainingJobs(organization, TrainingStatus.UNSPECIFIED)).length,
  ];
  await data.deleteDataset(dataset);
  await data.deleteBinaryDataByIds(files);
  for (const name of ['lines', 'scripted']) await client.appClient.deleteRegistryItem(`${organization}:${name}`);
  return results;
}

async function labelled(data, organization, part) {
  const dataset = await data.createDataset('colors', organization);
  const files = [];
  for (const label of LABELS) {
    for (let count = 0; count < EACH; count += 1) {
      const number = files.length; // the same content at the same time would be the same file
      const at = new Date(Date.UTC(2026, 0, 2, 0, 0, number));
      files.push(await data.binaryDataCaptureUpload(new Uint8Array([number]), part, 'camera', 'eye', 'ReadImage', '.png', [at, at], [label]));
    }
  }
  await data.addBinaryDataToDatasetByIds(files, dataset);
  return { dataset, files };
}

// The SDK has no events.
async function ended(training, job, { PENDING, IN_PROGRESS, CANCELING }) {
  for (;;) {
    const metadata = await training.getTrainingJob(job);
    if (![PENDING, IN_PROGRESS, CANCELING].includes(metadata.status)) return metadata;
    await new Promise((done) => setTimeout(done, 50));
  }
}
