import { mountIslands } from '../base/island';
import { lineOf, type Answer, type Refusal } from './answer';
import type { SavedQuery } from './saved';
import Sql from './Sql.svelte';

type Pairs = readonly (readonly [string, string])[];

mountIslands('sql', Sql, (props) => {
  const query = props.text('query'), answer = props.text('answer');
  return {
    organization: props.text('organization'), organizations: JSON.parse(props.text('organizations')) as Pairs, query,
    saved: JSON.parse(props.text('saved')) as readonly SavedQuery[], opened: props.text('opened'),
    answer: answer ? (lineOf(answer) as Answer | Refusal) : null, run: props.flag('run'),
    examples: JSON.parse(props.text('examples')) as Pairs, columns: JSON.parse(props.text('columns')) as readonly string[],
  };
});
