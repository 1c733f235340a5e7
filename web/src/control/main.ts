import { mountIslands } from '../base/island';
import Control from './Control.svelte';
import './control.css';

mountIslands('control', Control, (props) => ({
  name: props.text('name'),
  part: props.text('part'),
  token: props.text('token'),
  webrtc: props.flag('webrtc'),
  resourcePages: props.flag('resource_pages'),
  cards: props.text('cards'),
  arrange: props.text('arrange'),
}));
