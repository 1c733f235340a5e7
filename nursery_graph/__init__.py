"""A Trio nursery that starts and stops its children in dependency order.

A node starts when everything it requires is ready and stops after everything that depends on it, whatever the cause.
The contract is in docs/design/nursery_graph.md; a first example is in the package's README.
"""

from nursery_graph.execution.current_node import CurrentNode as CurrentNode
from nursery_graph.execution.current_node import current_node as current_node
from nursery_graph.failures import FailureCount as FailureCount
from nursery_graph.graph import Graph as Graph
from nursery_graph.lifecycle import State as State
from nursery_graph.node import Node as Node
from nursery_graph.node import Run as Run
from nursery_graph.observe import Changes as Changes
from nursery_graph.plan import cyclic_groups as cyclic_groups
from nursery_graph.process import ProcessFailed as ProcessFailed
from nursery_graph.process import ProcessGroup as ProcessGroup
from nursery_graph.process import process_group as process_group
from nursery_graph.process import supervise as supervise
from nursery_graph.restart import Restart as Restart
from nursery_graph.restart import back_off as back_off
from nursery_graph.status import NodeStatus as NodeStatus
from nursery_graph.status import Overdue as Overdue
from nursery_graph.status import Snapshot as Snapshot
from nursery_graph.status import Transition as Transition
