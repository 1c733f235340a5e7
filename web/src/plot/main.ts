import 'uplot/dist/uPlot.min.css';
import { mountIslands } from '../base/island';
import Plots from './Plots.svelte';
import Threshold from './Threshold.svelte';

mountIslands('plot', Plots, (props) => ({
  source: props.text('source'), name: props.text('name'), query: props.text('query'), from: props.text('from'), to: props.text('to'),
  lines: props.text('lines'), shortest: props.number('shortest'), longest: props.number('longest'),
}));
mountIslands('threshold', Threshold, (props) => ({ source: props.text('source'), part: props.text('part') }));
