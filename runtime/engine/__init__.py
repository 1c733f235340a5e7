"""The engine: registers models, plans configurations, runs resources as graph nodes, and dispatches calls to them.

Public, in the order in which to read them:

* `calls.sessions`: Sessions: if a client that commands actuators is silent for too long, they are stopped
* `home_folder`: The folder in which machine-server keeps its files
* `metrics.sample`: A sample of all metrics of a machine, by dotted name
* `planning.maintenance`: Decides whether the machine may be reconfigured or restarted now, a pure function of given
  facts
* `resource`: The base classes of drivers, and the context in which a driver is constructed
* `apis`: Import paths of the base class of each API; a class is imported when it is first used
* `components.controls.board`: Board: the pins of a computer or microcontroller
* `components.controls.button`: Button: a control that can be pushed
* `components.controls.input_controller`: Input controller: a gamepad, a keyboard, a row of buttons
* `components.controls.switch`: Switch: a control with a fixed number of positions
* `components.generic`: Generic component: for hardware that fits no other API
* `components.media.audio_in`: Audio input: a microphone
* `components.media.audio_out`: Audio output: a loudspeaker
* `components.media.camera`: Camera: images and point clouds
* `components.motion.arm`: Arm: a chain of joints that moves a tool to a pose
* `components.motion.base`: Base: the wheels, tracks or legs that a machine drives on
* `components.motion.gantry`: Gantry: linear axes
* `components.motion.gripper`: Gripper: opens, grabs and holds
* `components.motion.motor`: Motor: turns at a power or speed, or to a position
* `components.motion.servo`: Servo: turns to an angle and holds it
* `components.sensing.encoder`: Encoder: measures the position of a shaft
* `components.sensing.pose_tracker`: Pose tracker: measures the poses of visible bodies
* `components.sensing.sensor`: Sensor: named readings
* `proxy`: Proxy classes for resources in modules and on remotes: every method of the base class is an RPC
* `registry`: Finds the class that implements a model of an API
* `services.data_manager`: Data manager: captures data from other resources and uploads it
* `services.discovery`: Discovery service: finds hardware and suggests a configuration for it
* `services.generic`: Generic service: for software that fits no other API
* `services.mlmodel`: ML model service: runs a trained model on tensors
* `services.sensors`: Sensors service: returns readings of several sensors in one call
* `services.shell`: Shell service: opens a terminal on the machine and copies files to and from it
* `components.sensing.movement_sensor`: Movement sensor: measures position, orientation and motion
* `components.sensing.power_sensor`: Power sensor: measures voltage, current and power
* `services.motion`: Motion service: moves components to places, around obstacles
* `services.vision`: Vision service: recognizes objects in images and in the view of a camera
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runtime.engine.apis import base_of as base_of
    from runtime.engine.calls.sessions import SESSION_KEY as SESSION_KEY
    from runtime.engine.components.controls.board import Board as Board
    from runtime.engine.components.controls.button import Button as Button
    from runtime.engine.components.controls.input_controller import InputController as InputController
    from runtime.engine.components.controls.switch import Switch as Switch
    from runtime.engine.components.generic import Generic as Generic
    from runtime.engine.components.media.audio_in import AudioIn as AudioIn
    from runtime.engine.components.media.audio_out import AudioOut as AudioOut
    from runtime.engine.components.media.camera import Camera as Camera
    from runtime.engine.components.motion.arm import Arm as Arm
    from runtime.engine.components.motion.base import Base as Base
    from runtime.engine.components.motion.gantry import Gantry as Gantry
    from runtime.engine.components.motion.gripper import Gripper as Gripper
    from runtime.engine.components.motion.motor import Motor as Motor
    from runtime.engine.components.motion.servo import Servo as Servo
    from runtime.engine.components.sensing.encoder import Encoder as Encoder
    from runtime.engine.components.sensing.movement_sensor import MovementSensor as MovementSensor
    from runtime.engine.components.sensing.pose_tracker import PoseTracker as PoseTracker
    from runtime.engine.components.sensing.power_sensor import PowerSensor as PowerSensor
    from runtime.engine.components.sensing.sensor import Sensor as Sensor
    from runtime.engine.home_folder import home as home
    from runtime.engine.metrics.sample import CUMULATIVE as CUMULATIVE
    from runtime.engine.metrics.sample import UNITS as UNITS
    from runtime.engine.planning.maintenance import FACTS_KEY as FACTS_KEY
    from runtime.engine.proxy import Proxied as Proxied
    from runtime.engine.proxy import proxy_of as proxy_of
    from runtime.engine.registry import Registry as Registry
    from runtime.engine.registry import installed_models as installed_models
    from runtime.engine.resource import Actuator as Actuator
    from runtime.engine.resource import Attributes as Attributes
    from runtime.engine.resource import Component as Component
    from runtime.engine.resource import Context as Context
    from runtime.engine.resource import Extra as Extra
    from runtime.engine.resource import Resource as Resource
    from runtime.engine.resource import Service as Service
    from runtime.engine.resource import Started as Started
    from runtime.engine.resource import Unsupported as Unsupported
    from runtime.engine.resource import Value as Value
    from runtime.engine.resource import model as model
    from runtime.engine.services.data_manager import DataManager as DataManager
    from runtime.engine.services.discovery import DiscoveryService as DiscoveryService
    from runtime.engine.services.generic import GenericService as GenericService
    from runtime.engine.services.mlmodel import MLModel as MLModel
    from runtime.engine.services.motion import Motion as Motion
    from runtime.engine.services.sensors import Sensors as Sensors
    from runtime.engine.services.shell import CopyMessage as CopyMessage
    from runtime.engine.services.shell import CopySource as CopySource
    from runtime.engine.services.shell import FileData as FileData
    from runtime.engine.services.shell import ShellService as ShellService
    from runtime.engine.services.vision import Vision as Vision
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "calls.sessions": ["SESSION_KEY"],
            "home_folder": ["home"],
            "metrics.sample": ["CUMULATIVE", "UNITS"],
            "planning.maintenance": ["FACTS_KEY"],
            "resource": [
                "Actuator",
                "Attributes",
                "Component",
                "Context",
                "Extra",
                "Resource",
                "Service",
                "Started",
                "Unsupported",
                "Value",
                "model",
            ],
            "apis": ["base_of"],
            "components.controls.board": ["Board"],
            "components.controls.button": ["Button"],
            "components.controls.input_controller": ["InputController"],
            "components.controls.switch": ["Switch"],
            "components.generic": ["Generic"],
            "components.media.audio_in": ["AudioIn"],
            "components.media.audio_out": ["AudioOut"],
            "components.media.camera": ["Camera"],
            "components.motion.arm": ["Arm"],
            "components.motion.base": ["Base"],
            "components.motion.gantry": ["Gantry"],
            "components.motion.gripper": ["Gripper"],
            "components.motion.motor": ["Motor"],
            "components.motion.servo": ["Servo"],
            "components.sensing.encoder": ["Encoder"],
            "components.sensing.pose_tracker": ["PoseTracker"],
            "components.sensing.sensor": ["Sensor"],
            "proxy": ["Proxied", "proxy_of"],
            "registry": ["Registry", "installed_models"],
            "services.data_manager": ["DataManager"],
            "services.discovery": ["DiscoveryService"],
            "services.generic": ["GenericService"],
            "services.mlmodel": ["MLModel"],
            "services.sensors": ["Sensors"],
            "services.shell": ["CopyMessage", "CopySource", "FileData", "ShellService"],
            "components.sensing.movement_sensor": ["MovementSensor"],
            "components.sensing.power_sensor": ["PowerSensor"],
            "services.motion": ["Motion"],
            "services.vision": ["Vision"],
        },
    )
