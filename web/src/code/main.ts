// The editor of configurations: it takes the place of the text field of form[data-editor], which works without scripts.
// The server checks the text and finds the completions.
import { findForm } from './form';
import { Editor } from './editor';

const form = findForm();
if (form !== null) new Editor(form).start();
