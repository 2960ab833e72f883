"""Systems that answer text: functions, objects, services and chat models."""
