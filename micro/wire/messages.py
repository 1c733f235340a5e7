"""Published calls and their messages. Written by tools/gen_micro_messages.py; `make generate` updates it.

Pure. A message is a number. MESSAGES has its fields: number, name, kind with flags (see protobuf), message. SERVICES
and CALLS have, for each service, its name, its API, and its calls: name, method, request, reply, whether it moves.
"""

# ruff: noqa: E501
# fmt: off

SERVICES = (
    ('viam.robot.v1.RobotService', '', (
        ('GetOperations', 'get_operations', 0, 3, False),
        ('ResourceNames', 'resource_names', 0, 5, False),
        ('StopAll', 'stop_all', 0, 0, False),
        ('StartSession', 'start_session', 6, 7, False),
        ('SendSessionHeartbeat', 'send_session_heartbeat', 8, 0, False),
        ('Log', 'log', 10, 0, False),
        ('GetCloudMetadata', 'get_cloud_metadata', 0, 11, False),
        ('Shutdown', 'shutdown', 0, 0, False),
        ('GetMachineStatus', 'get_machine_status', 0, 14, False),
        ('GetVersion', 'get_version', 0, 15, False),
    )),
    ('proto.rpc.v1.AuthService', '', (
        ('Authenticate', 'authenticate', 17, 18, False),
    )),
    ('viam.component.base.v1.BaseService', 'base', (
        ('MoveStraight', 'move_straight', 19, 0, True),
        ('Spin', 'spin', 20, 0, True),
        ('SetPower', 'set_power', 22, 0, True),
        ('SetVelocity', 'set_velocity', 22, 0, True),
        ('Stop', 'stop', 23, 0, False),
        ('IsMoving', 'is_moving', 23, 24, False),
        ('DoCommand', 'do_command', 25, 26, False),
        ('GetProperties', 'get_properties', 23, 27, False),
    )),
    ('viam.component.board.v1.BoardService', 'board', (
        ('SetGPIO', 'set_gpio', 28, 0, False),
        ('GetGPIO', 'get_gpio', 29, 30, False),
        ('PWM', 'pwm', 29, 31, False),
        ('SetPWM', 'set_pwm', 32, 0, False),
        ('PWMFrequency', 'pwm_frequency', 29, 33, False),
        ('SetPWMFrequency', 'set_pwm_frequency', 34, 0, False),
        ('DoCommand', 'do_command', 25, 26, False),
        ('ReadAnalogReader', 'read_analog_reader', 35, 36, False),
        ('WriteAnalog', 'write_analog', 37, 0, False),
        ('GetDigitalInterruptValue', 'get_digital_interrupt_value', 38, 39, False),
        ('SetPowerMode', 'set_power_mode', 40, 0, False),
    )),
    ('viam.component.button.v1.ButtonService', 'button', (
        ('Push', 'push', 23, 0, True),
        ('DoCommand', 'do_command', 25, 26, False),
    )),
    ('viam.component.encoder.v1.EncoderService', 'encoder', (
        ('GetPosition', 'get_position', 41, 42, False),
        ('ResetPosition', 'reset_position', 23, 0, False),
        ('GetProperties', 'get_properties', 23, 43, False),
        ('DoCommand', 'do_command', 25, 26, False),
    )),
    ('viam.component.generic.v1.GenericService', 'generic', (
        ('DoCommand', 'do_command', 25, 26, False),
    )),
    ('viam.component.motor.v1.MotorService', 'motor', (
        ('SetPower', 'set_power', 44, 0, True),
        ('GoFor', 'go_for', 45, 0, True),
        ('GoTo', 'go_to', 46, 0, True),
        ('SetRPM', 'set_rpm', 47, 0, True),
        ('ResetZeroPosition', 'reset_zero_position', 48, 0, False),
        ('GetPosition', 'get_position', 23, 49, False),
        ('GetProperties', 'get_properties', 23, 50, False),
        ('Stop', 'stop', 23, 0, False),
        ('IsPowered', 'is_powered', 23, 51, False),
        ('IsMoving', 'is_moving', 23, 24, False),
        ('DoCommand', 'do_command', 25, 26, False),
    )),
    ('viam.component.movementsensor.v1.MovementSensorService', 'movement_sensor', (
        ('GetLinearVelocity', 'get_linear_velocity', 23, 52, False),
        ('GetAngularVelocity', 'get_angular_velocity', 23, 53, False),
        ('GetCompassHeading', 'get_compass_heading', 23, 54, False),
        ('GetOrientation', 'get_orientation', 23, 56, False),
        ('GetPosition', 'get_position', 23, 58, False),
        ('GetProperties', 'get_properties', 23, 59, False),
        ('GetAccuracy', 'get_accuracy', 23, 61, False),
        ('GetLinearAcceleration', 'get_linear_acceleration', 23, 62, False),
        ('DoCommand', 'do_command', 25, 26, False),
        ('GetReadings', 'get_readings', 23, 64, False),
    )),
    ('viam.component.powersensor.v1.PowerSensorService', 'power_sensor', (
        ('GetVoltage', 'get_voltage', 23, 65, False),
        ('GetCurrent', 'get_current', 23, 66, False),
        ('GetPower', 'get_power', 23, 67, False),
        ('GetReadings', 'get_readings', 23, 64, False),
        ('DoCommand', 'do_command', 25, 26, False),
    )),
    ('viam.component.sensor.v1.SensorService', 'sensor', (
        ('GetReadings', 'get_readings', 23, 64, False),
        ('DoCommand', 'do_command', 25, 26, False),
    )),
    ('viam.component.servo.v1.ServoService', 'servo', (
        ('Move', 'move', 68, 0, True),
        ('GetPosition', 'get_position', 23, 69, False),
        ('Stop', 'stop', 23, 0, False),
        ('IsMoving', 'is_moving', 23, 24, False),
        ('DoCommand', 'do_command', 25, 26, False),
    )),
    ('viam.component.switch.v1.SwitchService', 'switch', (
        ('SetPosition', 'set_position', 70, 0, True),
        ('GetPosition', 'get_position', 23, 71, False),
        ('GetNumberOfPositions', 'get_number_of_positions', 23, 72, False),
        ('DoCommand', 'do_command', 25, 26, False),
    )),
)
CALLS = (
    ('viam.app.v1.RobotService', '', (
        ('Log', 'log', 73, 0, False),
    )),
    ('viam.app.datasync.v1.DataSyncService', '', (
        ('DataCaptureUpload', 'data_capture_upload', 77, 78, False),
    )),
)
SENSOR_DATA = 76
MESSAGES = (
    (),  # 0 viam.robot.v1.GetOperationsRequest and 32 more
    ((1, 'seconds', 2, 0), (2, 'nanos', 2, 0)),  # 1 google.protobuf.Timestamp and 1 more
    ((1, 'id', 6, 0), (2, 'method', 6, 0), (3, 'arguments', 41, 0), (4, 'started', 40, 1), (5, 'session_id', 38, 0)),  # 2 viam.robot.v1.Operation
    ((1, 'operations', 24, 2),),  # 3 viam.robot.v1.GetOperationsResponse
    ((1, 'namespace', 6, 0), (2, 'type', 6, 0), (3, 'subtype', 6, 0), (4, 'name', 6, 0)),  # 4 viam.common.v1.ResourceName
    ((1, 'resources', 24, 4),),  # 5 viam.robot.v1.ResourceNamesResponse
    ((1, 'resume', 6, 0),),  # 6 viam.robot.v1.StartSessionRequest
    ((1, 'id', 6, 0), (2, 'heartbeat_window', 40, 1)),  # 7 viam.robot.v1.StartSessionResponse
    ((1, 'id', 6, 0),),  # 8 viam.robot.v1.SendSessionHeartbeatRequest
    ((1, 'host', 6, 0), (2, 'level', 6, 0), (3, 'time', 40, 1), (4, 'logger_name', 6, 0), (5, 'message', 6, 0)),  # 9 viam.common.v1.LogEntry
    ((1, 'logs', 24, 9),),  # 10 viam.robot.v1.LogRequest
    ((2, 'primary_org_id', 6, 0), (3, 'location_id', 6, 0), (4, 'machine_id', 6, 0), (5, 'machine_part_id', 6, 0)),  # 11 viam.robot.v1.GetCloudMetadataResponse
    ((1, 'name', 40, 4), (2, 'state', 1, 0), (3, 'last_updated', 40, 1), (4, 'revision', 6, 0), (5, 'error', 6, 0), (7, 'reachability', 1, 0), (8, 'remote', 38, 0)),  # 12 viam.robot.v1.ResourceStatus
    ((1, 'revision', 6, 0), (2, 'last_updated', 40, 1)),  # 13 viam.robot.v1.ConfigStatus
    ((1, 'resources', 24, 12), (2, 'config', 40, 13), (3, 'state', 1, 0)),  # 14 viam.robot.v1.GetMachineStatusResponse
    ((1, 'platform', 6, 0), (2, 'version', 6, 0), (3, 'api_version', 6, 0)),  # 15 viam.robot.v1.GetVersionResponse
    ((1, 'type', 6, 0), (2, 'payload', 6, 0)),  # 16 proto.rpc.v1.Credentials
    ((1, 'entity', 6, 0), (2, 'credentials', 40, 16)),  # 17 proto.rpc.v1.AuthenticateRequest
    ((1, 'access_token', 6, 0),),  # 18 proto.rpc.v1.AuthenticateResponse
    ((1, 'name', 6, 0), (2, 'distance_mm', 2, 0), (3, 'mm_per_sec', 4, 0)),  # 19 viam.component.base.v1.MoveStraightRequest
    ((1, 'name', 6, 0), (2, 'angle_deg', 4, 0), (3, 'degs_per_sec', 4, 0)),  # 20 viam.component.base.v1.SpinRequest
    ((1, 'x', 4, 0), (2, 'y', 4, 0), (3, 'z', 4, 0)),  # 21 viam.common.v1.Vector3
    ((1, 'name', 6, 0), (2, 'linear', 40, 21), (3, 'angular', 40, 21)),  # 22 viam.component.base.v1.SetPowerRequest and 1 more
    ((1, 'name', 6, 0),),  # 23 viam.component.base.v1.StopRequest and 27 more
    ((1, 'is_moving', 0, 0),),  # 24 viam.component.base.v1.IsMovingResponse and 2 more
    ((1, 'name', 6, 0), (2, 'command', 41, 0)),  # 25 viam.common.v1.DoCommandRequest
    ((1, 'result', 41, 0),),  # 26 viam.common.v1.DoCommandResponse
    ((1, 'width_meters', 4, 0), (2, 'turning_radius_meters', 4, 0), (3, 'wheel_circumference_meters', 4, 0)),  # 27 viam.component.base.v1.GetPropertiesResponse
    ((1, 'name', 6, 0), (2, 'pin', 6, 0), (3, 'high', 0, 0)),  # 28 viam.component.board.v1.SetGPIORequest
    ((1, 'name', 6, 0), (2, 'pin', 6, 0)),  # 29 viam.component.board.v1.GetGPIORequest and 2 more
    ((1, 'high', 0, 0),),  # 30 viam.component.board.v1.GetGPIOResponse
    ((1, 'duty_cycle_pct', 4, 0),),  # 31 viam.component.board.v1.PWMResponse
    ((1, 'name', 6, 0), (2, 'pin', 6, 0), (3, 'duty_cycle_pct', 4, 0)),  # 32 viam.component.board.v1.SetPWMRequest
    ((1, 'frequency_hz', 1, 0),),  # 33 viam.component.board.v1.PWMFrequencyResponse
    ((1, 'name', 6, 0), (2, 'pin', 6, 0), (3, 'frequency_hz', 1, 0)),  # 34 viam.component.board.v1.SetPWMFrequencyRequest
    ((1, 'board_name', 6, 0), (2, 'analog_reader_name', 6, 0)),  # 35 viam.component.board.v1.ReadAnalogReaderRequest
    ((1, 'value', 2, 0), (2, 'min_range', 5, 0), (3, 'max_range', 5, 0), (4, 'step_size', 5, 0)),  # 36 viam.component.board.v1.ReadAnalogReaderResponse
    ((1, 'name', 6, 0), (2, 'pin', 6, 0), (3, 'value', 2, 0)),  # 37 viam.component.board.v1.WriteAnalogRequest
    ((1, 'board_name', 6, 0), (2, 'digital_interrupt_name', 6, 0)),  # 38 viam.component.board.v1.GetDigitalInterruptValueRequest
    ((1, 'value', 2, 0),),  # 39 viam.component.board.v1.GetDigitalInterruptValueResponse
    ((1, 'name', 6, 0), (2, 'power_mode', 1, 0), (3, 'duration', 40, 1)),  # 40 viam.component.board.v1.SetPowerModeRequest
    ((1, 'name', 6, 0), (2, 'position_type', 33, 0)),  # 41 viam.component.encoder.v1.GetPositionRequest
    ((1, 'value', 5, 0), (2, 'position_type', 1, 0)),  # 42 viam.component.encoder.v1.GetPositionResponse
    ((1, 'ticks_count_supported', 0, 0), (2, 'angle_degrees_supported', 0, 0)),  # 43 viam.component.encoder.v1.GetPropertiesResponse
    ((1, 'name', 6, 0), (2, 'power_pct', 4, 0)),  # 44 viam.component.motor.v1.SetPowerRequest
    ((1, 'name', 6, 0), (2, 'rpm', 4, 0), (3, 'revolutions', 4, 0)),  # 45 viam.component.motor.v1.GoForRequest
    ((1, 'name', 6, 0), (2, 'rpm', 4, 0), (3, 'position_revolutions', 4, 0)),  # 46 viam.component.motor.v1.GoToRequest
    ((1, 'name', 6, 0), (2, 'rpm', 4, 0)),  # 47 viam.component.motor.v1.SetRPMRequest
    ((1, 'name', 6, 0), (2, 'offset', 4, 0)),  # 48 viam.component.motor.v1.ResetZeroPositionRequest
    ((1, 'position', 4, 0),),  # 49 viam.component.motor.v1.GetPositionResponse
    ((1, 'position_reporting', 0, 0),),  # 50 viam.component.motor.v1.GetPropertiesResponse
    ((1, 'is_on', 0, 0), (2, 'power_pct', 4, 0)),  # 51 viam.component.motor.v1.IsPoweredResponse
    ((1, 'linear_velocity', 40, 21),),  # 52 viam.component.movementsensor.v1.GetLinearVelocityResponse
    ((1, 'angular_velocity', 40, 21),),  # 53 viam.component.movementsensor.v1.GetAngularVelocityResponse
    ((1, 'value', 4, 0),),  # 54 viam.component.movementsensor.v1.GetCompassHeadingResponse
    ((1, 'o_x', 4, 0), (2, 'o_y', 4, 0), (3, 'o_z', 4, 0), (4, 'theta', 4, 0)),  # 55 viam.common.v1.Orientation
    ((1, 'orientation', 40, 55),),  # 56 viam.component.movementsensor.v1.GetOrientationResponse
    ((1, 'latitude', 4, 0), (2, 'longitude', 4, 0)),  # 57 viam.common.v1.GeoPoint
    ((1, 'coordinate', 40, 57), (2, 'altitude_m', 5, 0)),  # 58 viam.component.movementsensor.v1.GetPositionResponse
    ((1, 'linear_velocity_supported', 0, 0), (2, 'angular_velocity_supported', 0, 0), (3, 'orientation_supported', 0, 0), (4, 'position_supported', 0, 0), (5, 'compass_heading_supported', 0, 0), (6, 'linear_acceleration_supported', 0, 0)),  # 59 viam.component.movementsensor.v1.GetPropertiesResponse
    ((1, 'key', 6, 0), (2, 'value', 5, 0)),  # 60 viam.component.movementsensor.v1.GetAccuracyResponse.AccuracyEntry
    ((1, 'accuracy', 72, 60), (2, 'position_hdop', 37, 0), (3, 'position_vdop', 37, 0), (4, 'position_nmea_gga_fix', 34, 0), (5, 'compass_degrees_error', 37, 0)),  # 61 viam.component.movementsensor.v1.GetAccuracyResponse
    ((1, 'linear_acceleration', 40, 21),),  # 62 viam.component.movementsensor.v1.GetLinearAccelerationResponse
    ((1, 'key', 6, 0), (2, 'value', 42, 0)),  # 63 viam.common.v1.GetReadingsResponse.ReadingsEntry
    ((1, 'readings', 72, 63),),  # 64 viam.common.v1.GetReadingsResponse
    ((1, 'volts', 4, 0), (2, 'is_ac', 0, 0)),  # 65 viam.component.powersensor.v1.GetVoltageResponse
    ((1, 'amperes', 4, 0), (2, 'is_ac', 0, 0)),  # 66 viam.component.powersensor.v1.GetCurrentResponse
    ((1, 'watts', 4, 0),),  # 67 viam.component.powersensor.v1.GetPowerResponse
    ((1, 'name', 6, 0), (2, 'angle_deg', 1, 0)),  # 68 viam.component.servo.v1.MoveRequest
    ((1, 'position_deg', 1, 0),),  # 69 viam.component.servo.v1.GetPositionResponse
    ((1, 'name', 6, 0), (2, 'position', 1, 0)),  # 70 viam.component.switch.v1.SetPositionRequest
    ((1, 'position', 1, 0),),  # 71 viam.component.switch.v1.GetPositionResponse
    ((1, 'number_of_positions', 1, 0), (2, 'labels', 22, 0)),  # 72 viam.component.switch.v1.GetNumberOfPositionsResponse
    ((1, 'id', 6, 0), (2, 'logs', 24, 9)),  # 73 viam.app.v1.LogRequest
    ((1, 'part_id', 6, 0), (2, 'component_type', 6, 0), (3, 'component_name', 6, 0), (5, 'method_name', 6, 0), (6, 'type', 1, 0), (7, 'file_name', 6, 0), (9, 'file_extension', 6, 0), (14, 'file_create_time', 40, 1), (15, 'file_modify_time', 40, 1), (10, 'tags', 22, 0), (12, 'dataset_ids', 22, 0), (13, 'mime_type', 6, 0)),  # 74 viam.app.datasync.v1.UploadMetadata
    ((1, 'time_requested', 40, 1), (2, 'time_received', 40, 1), (3, 'mime_type', 1, 0)),  # 75 viam.app.datasync.v1.SensorMetadata
    ((1, 'metadata', 40, 75), (2, 'struct', 41, 0), (3, 'binary', 39, 0)),  # 76 viam.app.datasync.v1.SensorData
    ((1, 'metadata', 40, 74), (2, 'sensor_contents', 24, 76)),  # 77 viam.app.datasync.v1.DataCaptureUploadRequest
    ((1, 'file_id', 6, 0), (2, 'binary_data_id', 6, 0)),  # 78 viam.app.datasync.v1.DataCaptureUploadResponse
)
