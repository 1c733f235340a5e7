"""The engine: registers models, plans configurations, runs resources as graph nodes, and dispatches calls to them.

Public, in the order in which to read them:

* `calls.sessions`: Sessions: if a client that commands actuators is silent for too long, they are stopped
* `components.media.audio`: Audio formats, shared by microphones and loudspeakers
* `components.media.image_format`: Detects the format of an encoded image
* `components.motion.kinematics`: Kinematics of arms, gantries and grippers: their links and joints
* `hardware`: Selects the family of hardware drivers of a machine
* `home_folder`: The folder in which machine-server keeps its files
* `lifecycle`: How far a machine is between its start and its stop
* `options`: The options of machine-server, as plain data
* `planning.maintenance`: Decides whether the machine may be reconfigured or restarted now, a pure function of given
  facts
* `resource`: The base classes of drivers, and the context in which a driver is constructed
* `version`: Version of the published API
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
* `host`: ResourceHost: runs a driver, and guards every method call to it
* `proxy`: Proxy classes for resources in modules and on remotes: every method of the base class is an RPC
* `registry`: Finds the class that implements a model of an API
* `services.base_remote_control`: Base remote control: drives a base with an input controller
* `services.data_manager`: Data manager: captures data from other resources and uploads it
* `services.discovery`: Discovery service: finds hardware and suggests a configuration for it
* `services.generic`: Generic service: for software that fits no other API
* `services.mlmodel`: ML model service: runs a trained model on tensors
* `services.navigation`: Navigation service: drives a base to places on a map, along routes, and around zones
* `services.sensors`: Sensors service: returns readings of several sensors in one call
* `services.shell`: Shell service: opens a terminal on the machine and copies files to and from it
* `services.slam`: SLAM service: a map of the surroundings, and where the machine is in it
* `services.world_state_store`: World state store: objects in space, for programs that draw or avoid them
* `components.sensing.movement_sensor`: Movement sensor: measures position, orientation and motion
* `components.sensing.power_sensor`: Power sensor: measures voltage, current and power
* `roster`: The resources of a machine: those that its document asks for, and those that are open for calls
* `services.motion`: Motion service: moves components to places, around obstacles
* `services.vision`: Vision service: recognizes objects in images and in the view of a camera
* `metrics.sample`: A sample of all metrics of a machine, by dotted name
* `nodes`: Creates graph nodes for resources
* `part`: The parts of a machine other than its resources and its port: jobs, modules, remotes and others
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.apis import BASES as BASES
    from engine.apis import FOLDERS as FOLDERS
    from engine.apis import base_of as base_of
    from engine.calls.sessions import SESSION_KEY as SESSION_KEY
    from engine.components.controls.board import AnalogReading as AnalogReading
    from engine.components.controls.board import Board as Board
    from engine.components.controls.board import PowerMode as PowerMode
    from engine.components.controls.board import Tick as Tick
    from engine.components.controls.button import Button as Button
    from engine.components.controls.input_controller import Event as Event
    from engine.components.controls.input_controller import InputController as InputController
    from engine.components.controls.input_controller import Subscription as Subscription
    from engine.components.controls.switch import Switch as Switch
    from engine.components.controls.switch import SwitchPositions as SwitchPositions
    from engine.components.generic import Generic as Generic
    from engine.components.media.audio import AudioInfo as AudioInfo
    from engine.components.media.audio import AudioProperties as AudioProperties
    from engine.components.media.audio_in import AudioChunk as AudioChunk
    from engine.components.media.audio_in import AudioIn as AudioIn
    from engine.components.media.audio_in import AudioResponse as AudioResponse
    from engine.components.media.audio_out import AudioOut as AudioOut
    from engine.components.media.camera import Annotations as Annotations
    from engine.components.media.camera import BoundingBox as BoundingBox
    from engine.components.media.camera import Camera as Camera
    from engine.components.media.camera import CameraProperties as CameraProperties
    from engine.components.media.camera import DistortionParameters as DistortionParameters
    from engine.components.media.camera import Image as Image
    from engine.components.media.camera import ImageClassification as ImageClassification
    from engine.components.media.camera import Images as Images
    from engine.components.media.camera import IntrinsicParameters as IntrinsicParameters
    from engine.components.media.camera import PointCloud as PointCloud
    from engine.components.media.camera import ResponseMetadata as ResponseMetadata
    from engine.components.media.image_format import mime_type as mime_type
    from engine.components.motion.arm import Arm as Arm
    from engine.components.motion.arm import ArmProperties as ArmProperties
    from engine.components.motion.arm import BatchAck as BatchAck
    from engine.components.motion.arm import MoveOptions as MoveOptions
    from engine.components.motion.arm import TrajectoryPoint as TrajectoryPoint
    from engine.components.motion.base import Base as Base
    from engine.components.motion.base import BaseProperties as BaseProperties
    from engine.components.motion.gantry import Gantry as Gantry
    from engine.components.motion.gripper import Grabbed as Grabbed
    from engine.components.motion.gripper import Gripper as Gripper
    from engine.components.motion.gripper import Holding as Holding
    from engine.components.motion.kinematics import JointType as JointType
    from engine.components.motion.kinematics import Kinematics as Kinematics
    from engine.components.motion.kinematics import KinematicsFormat as KinematicsFormat
    from engine.components.motion.kinematics import Mesh as Mesh
    from engine.components.motion.motor import Motor as Motor
    from engine.components.motion.motor import MotorProperties as MotorProperties
    from engine.components.motion.motor import Powered as Powered
    from engine.components.motion.servo import Servo as Servo
    from engine.components.sensing.encoder import Encoder as Encoder
    from engine.components.sensing.encoder import EncoderPosition as EncoderPosition
    from engine.components.sensing.encoder import EncoderProperties as EncoderProperties
    from engine.components.sensing.encoder import PositionType as PositionType
    from engine.components.sensing.movement_sensor import Accuracy as Accuracy
    from engine.components.sensing.movement_sensor import GeoPosition as GeoPosition
    from engine.components.sensing.movement_sensor import MovementProperties as MovementProperties
    from engine.components.sensing.movement_sensor import MovementSensor as MovementSensor
    from engine.components.sensing.pose_tracker import PoseTracker as PoseTracker
    from engine.components.sensing.power_sensor import Current as Current
    from engine.components.sensing.power_sensor import PowerSensor as PowerSensor
    from engine.components.sensing.power_sensor import Voltage as Voltage
    from engine.components.sensing.sensor import Sensor as Sensor
    from engine.hardware import open_hardware as open_hardware
    from engine.home_folder import home as home
    from engine.host import ResourceHost as ResourceHost
    from engine.lifecycle import Lifecycle as Lifecycle
    from engine.metrics.sample import CUMULATIVE as CUMULATIVE
    from engine.metrics.sample import UNITS as UNITS
    from engine.nodes import Bench as Bench
    from engine.nodes import resource_nodes as resource_nodes
    from engine.nodes import start_limit as start_limit
    from engine.options import EXIT_FAILED as EXIT_FAILED
    from engine.options import EXIT_OK as EXIT_OK
    from engine.options import EXIT_STUCK as EXIT_STUCK
    from engine.options import EXIT_USAGE as EXIT_USAGE
    from engine.options import Options as Options
    from engine.part import CloudAccess as CloudAccess
    from engine.part import Part as Part
    from engine.part import PartContext as PartContext
    from engine.planning.maintenance import FACTS_KEY as FACTS_KEY
    from engine.proxy import Proxied as Proxied
    from engine.proxy import proxy_of as proxy_of
    from engine.registry import Registry as Registry
    from engine.registry import installed_models as installed_models
    from engine.resource import Actuator as Actuator
    from engine.resource import Attributes as Attributes
    from engine.resource import Component as Component
    from engine.resource import Context as Context
    from engine.resource import Extra as Extra
    from engine.resource import Others as Others
    from engine.resource import Resource as Resource
    from engine.resource import ResourceAccess as ResourceAccess
    from engine.resource import Service as Service
    from engine.resource import Started as Started
    from engine.resource import Unsupported as Unsupported
    from engine.resource import Value as Value
    from engine.resource import model as model
    from engine.roster import Explain as Explain
    from engine.roster import Roster as Roster
    from engine.services.base_remote_control import BaseRemoteControl as BaseRemoteControl
    from engine.services.data_manager import DataManager as DataManager
    from engine.services.data_manager import MimeType as MimeType
    from engine.services.discovery import Discovery as Discovery
    from engine.services.discovery import DiscoveryService as DiscoveryService
    from engine.services.generic import GenericService as GenericService
    from engine.services.mlmodel import File as File
    from engine.services.mlmodel import FlatTensor as FlatTensor
    from engine.services.mlmodel import FlatTensors as FlatTensors
    from engine.services.mlmodel import LabelType as LabelType
    from engine.services.mlmodel import Metadata as Metadata
    from engine.services.mlmodel import MLModel as MLModel
    from engine.services.mlmodel import TensorInfo as TensorInfo
    from engine.services.motion import ComponentState as ComponentState
    from engine.services.motion import GeoGeometry as GeoGeometry
    from engine.services.motion import Motion as Motion
    from engine.services.motion import MotionConfiguration as MotionConfiguration
    from engine.services.motion import MotionConstraints as MotionConstraints
    from engine.services.motion import MotionPlan as MotionPlan
    from engine.services.motion import PlanHistory as PlanHistory
    from engine.services.motion import PlanState as PlanState
    from engine.services.motion import PlanStatus as PlanStatus
    from engine.services.motion import PlanStatusWithID as PlanStatusWithID
    from engine.services.motion import PlanStep as PlanStep
    from engine.services.motion import PlanWithStatus as PlanWithStatus
    from engine.services.motion import StreamOptions as StreamOptions
    from engine.services.motion import StreamTargets as StreamTargets
    from engine.services.motion import WorldState as WorldState
    from engine.services.motion import component_of as component_of
    from engine.services.navigation import NavCostmap as NavCostmap
    from engine.services.navigation import NavError as NavError
    from engine.services.navigation import NavErrorCode as NavErrorCode
    from engine.services.navigation import NavGeoPose as NavGeoPose
    from engine.services.navigation import NavGoal as NavGoal
    from engine.services.navigation import NavGoalState as NavGoalState
    from engine.services.navigation import Navigation as Navigation
    from engine.services.navigation import NavLocation as NavLocation
    from engine.services.navigation import NavMapType as NavMapType
    from engine.services.navigation import NavMode as NavMode
    from engine.services.navigation import NavPlan as NavPlan
    from engine.services.navigation import NavPosition as NavPosition
    from engine.services.navigation import NavProgress as NavProgress
    from engine.services.navigation import NavProperties as NavProperties
    from engine.services.navigation import NavRoute as NavRoute
    from engine.services.navigation import NavRouteProgress as NavRouteProgress
    from engine.services.navigation import NavStatus as NavStatus
    from engine.services.navigation import NavVelocity as NavVelocity
    from engine.services.navigation import NavWaypoint as NavWaypoint
    from engine.services.navigation import NavZone as NavZone
    from engine.services.sensors import SensorReadings as SensorReadings
    from engine.services.sensors import Sensors as Sensors
    from engine.services.shell import CopyMessage as CopyMessage
    from engine.services.shell import CopyMetadata as CopyMetadata
    from engine.services.shell import CopySource as CopySource
    from engine.services.shell import FileData as FileData
    from engine.services.shell import ShellOutput as ShellOutput
    from engine.services.shell import ShellService as ShellService
    from engine.services.slam import MappingMode as MappingMode
    from engine.services.slam import Slam as Slam
    from engine.services.slam import SlamProperties as SlamProperties
    from engine.services.slam import SlamSensor as SlamSensor
    from engine.services.slam import SlamSensorType as SlamSensorType
    from engine.services.vision import CaptureAll as CaptureAll
    from engine.services.vision import Classification as Classification
    from engine.services.vision import Detection as Detection
    from engine.services.vision import Detection3D as Detection3D
    from engine.services.vision import ObjectPointClouds as ObjectPointClouds
    from engine.services.vision import Vision as Vision
    from engine.services.vision import VisionProperties as VisionProperties
    from engine.services.world_state_store import TransformChange as TransformChange
    from engine.services.world_state_store import TransformChangeType as TransformChangeType
    from engine.services.world_state_store import WorldStateStore as WorldStateStore
    from engine.version import API_VERSION as API_VERSION
    from engine.version import PLATFORM as PLATFORM
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "calls.sessions": ["SESSION_KEY"],
            "components.media.audio": ["AudioInfo", "AudioProperties"],
            "components.media.image_format": ["mime_type"],
            "components.motion.kinematics": ["JointType", "Kinematics", "KinematicsFormat", "Mesh"],
            "hardware": ["open_hardware"],
            "home_folder": ["home"],
            "lifecycle": ["Lifecycle"],
            "options": ["EXIT_FAILED", "EXIT_OK", "EXIT_STUCK", "EXIT_USAGE", "Options"],
            "planning.maintenance": ["FACTS_KEY"],
            "resource": [
                "Actuator",
                "Attributes",
                "Component",
                "Context",
                "Extra",
                "Others",
                "Resource",
                "ResourceAccess",
                "Service",
                "Started",
                "Unsupported",
                "Value",
                "model",
            ],
            "version": ["API_VERSION", "PLATFORM"],
            "apis": ["BASES", "FOLDERS", "base_of"],
            "components.controls.board": ["AnalogReading", "Board", "PowerMode", "Tick"],
            "components.controls.button": ["Button"],
            "components.controls.input_controller": ["Event", "InputController", "Subscription"],
            "components.controls.switch": ["Switch", "SwitchPositions"],
            "components.generic": ["Generic"],
            "components.media.audio_in": ["AudioChunk", "AudioIn", "AudioResponse"],
            "components.media.audio_out": ["AudioOut"],
            "components.media.camera": [
                "Annotations",
                "BoundingBox",
                "Camera",
                "CameraProperties",
                "DistortionParameters",
                "Image",
                "ImageClassification",
                "Images",
                "IntrinsicParameters",
                "PointCloud",
                "ResponseMetadata",
            ],
            "components.motion.arm": ["Arm", "ArmProperties", "BatchAck", "MoveOptions", "TrajectoryPoint"],
            "components.motion.base": ["Base", "BaseProperties"],
            "components.motion.gantry": ["Gantry"],
            "components.motion.gripper": ["Grabbed", "Gripper", "Holding"],
            "components.motion.motor": ["Motor", "MotorProperties", "Powered"],
            "components.motion.servo": ["Servo"],
            "components.sensing.encoder": ["Encoder", "EncoderPosition", "EncoderProperties", "PositionType"],
            "components.sensing.pose_tracker": ["PoseTracker"],
            "components.sensing.sensor": ["Sensor"],
            "host": ["ResourceHost"],
            "proxy": ["Proxied", "proxy_of"],
            "registry": ["Registry", "installed_models"],
            "services.base_remote_control": ["BaseRemoteControl"],
            "services.data_manager": ["DataManager", "MimeType"],
            "services.discovery": ["Discovery", "DiscoveryService"],
            "services.generic": ["GenericService"],
            "services.mlmodel": ["File", "FlatTensor", "FlatTensors", "LabelType", "MLModel", "Metadata", "TensorInfo"],
            "services.navigation": [
                "NavCostmap",
                "NavError",
                "NavErrorCode",
                "NavGeoPose",
                "NavGoal",
                "NavGoalState",
                "NavLocation",
                "NavMapType",
                "NavMode",
                "NavPlan",
                "NavPosition",
                "NavProgress",
                "NavProperties",
                "NavRoute",
                "NavRouteProgress",
                "NavStatus",
                "NavVelocity",
                "NavWaypoint",
                "NavZone",
                "Navigation",
            ],
            "services.sensors": ["SensorReadings", "Sensors"],
            "services.shell": ["CopyMessage", "CopyMetadata", "CopySource", "FileData", "ShellOutput", "ShellService"],
            "services.slam": ["MappingMode", "Slam", "SlamProperties", "SlamSensor", "SlamSensorType"],
            "services.world_state_store": ["TransformChange", "TransformChangeType", "WorldStateStore"],
            "components.sensing.movement_sensor": ["Accuracy", "GeoPosition", "MovementProperties", "MovementSensor"],
            "components.sensing.power_sensor": ["Current", "PowerSensor", "Voltage"],
            "roster": ["Explain", "Roster"],
            "services.motion": [
                "ComponentState",
                "GeoGeometry",
                "Motion",
                "MotionConfiguration",
                "MotionConstraints",
                "MotionPlan",
                "PlanHistory",
                "PlanState",
                "PlanStatus",
                "PlanStatusWithID",
                "PlanStep",
                "PlanWithStatus",
                "StreamOptions",
                "StreamTargets",
                "WorldState",
                "component_of",
            ],
            "services.vision": [
                "CaptureAll",
                "Classification",
                "Detection",
                "Detection3D",
                "ObjectPointClouds",
                "Vision",
                "VisionProperties",
            ],
            "metrics.sample": ["CUMULATIVE", "UNITS"],
            "nodes": ["Bench", "resource_nodes", "start_limit"],
            "part": ["CloudAccess", "Part", "PartContext"],
        },
    )
