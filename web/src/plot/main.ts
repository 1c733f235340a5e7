import 'uplot/dist/uPlot.min.css';
import { mountIslands } from '../base/island';
import Plots from './Plots.svelte';

mountIslands('plot', Plots, (props) => ({ source: props.text('source'), name: props.text('name'), query: props.text('query'), from: props.text('from'), to: props.text('to') }));
