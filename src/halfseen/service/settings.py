"""Settings of the service: flags before environment variables before a TOML file."""

import ipaddress
import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, model_validator
from pydantic import ValidationError as Mistakes

from halfseen.errors import InvalidSettingError

PREFIX = "HALFSEEN_"
"""Of the environment variables: `HALFSEEN_API_KEY` is the setting `api_key`."""

SETTINGS = "HALFSEEN_SERVICE"
"""The variable in which a worker gets all settings."""


def _split(value: Any) -> Any:
    parts = value.split(",") if isinstance(value, str) else None
    return value if parts is None else [part.strip() for part in parts if part.strip()]


Names = Annotated[tuple[str, ...], BeforeValidator(_split)]
"""Names of columns; as a string separated by commas."""


class Settings(BaseModel):
    """The settings of the service.

    Examples
    --------
    >>> settings = Settings.of({"storage": "shop.db"}, {"HALFSEEN_PORT": "9000"})
    >>> settings.port, settings.workers
    (9000, 1)
    >>> Settings.of({"storage": "shop.db", "workers": 0})
    Traceback (most recent call last):
    halfseen.errors.InvalidSettingError: workers: input should be greater than or equal to 1, got 0
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    storage: str = Field(min_length=1)
    name: str = "default"
    durability: Literal["power-loss", "crash"] = "power-loss"
    id: str | None = None
    ignore: Names = ()
    categorical: Names = ()
    numeric: Names = ()
    explore: str = "ucb"
    uniform_share: float = Field(0.05, ge=0, le=1)
    expire_after: float = Field(1800.0, gt=0, le=1e9)  # seconds
    expire_reward: float = Field(0.0, allow_inf_nan=False)
    max_pending: int = Field(10_000, ge=1)

    host: str = "127.0.0.1"
    port: int = Field(8000, ge=0, le=65535)
    workers: int = Field(1, ge=1, le=64)
    api_key: SecretStr | None = Field(None, min_length=16)
    max_body: int = Field(1_000_000, ge=100, le=1_000_000_000)  # bytes
    max_options: int = Field(1000, ge=1, le=100_000)
    timeout: float = Field(10.0, gt=0, le=600)  # seconds for a request
    every: float = Field(1.0, gt=0, le=60)  # seconds between looks at what is due
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @model_validator(mode="after")
    def _key_beyond_this_machine(self) -> "Settings":
        if self.api_key is None and not is_loopback(self.host):
            raise ValueError(
                f"without api_key the service binds to the loopback address only, got host "
                f"{self.host}: set {PREFIX}API_KEY to a secret of at least 16 characters"
            )
        return self

    @classmethod
    def of(
        cls,
        flags: Mapping[str, Any],
        environment: Mapping[str, str] = os.environ,
        file: Path | None = None,
    ) -> "Settings":
        """Return settings from all three places; a flag that is None was not given.

        Raises
        ------
        InvalidSettingError
            Names each setting that is wrong.
        """
        known = cls.model_fields
        found = {} if file is None else _read(file)
        variables = {name: environment.get(f"{PREFIX}{name.upper()}") for name in known}
        for source in (variables, flags):
            found |= {name: value for name, value in source.items() if value is not None}
        try:
            return cls.model_validate(found)
        except Mistakes as error:
            raise InvalidSettingError("; ".join(map(message_of, error.errors()))) from None

    def to_json(self) -> str:
        """Return what was set, with the key, as `model_validate_json` reads it."""
        key = {} if self.api_key is None else {"api_key": self.api_key.get_secret_value()}
        return json.dumps(self.model_dump(mode="json", exclude_unset=True) | key)


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine.

    >>> is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def message_of(error: Any) -> str:
    """Return one mistake that pydantic found as a sentence."""
    if error["type"] == "json_invalid":
        return f"the body is no JSON: {error['ctx']['error']}"
    text = error["msg"].removeprefix("Value error, ")
    where = ".".join(str(part) for part in error["loc"] if part != "body")
    if where == "storage":
        return "name a database: halfseen serve shop.db"
    if where == "api_key":
        return f"api_key has {len(error['input'])} characters, needs at least 16"
    if not where:
        return str(text)
    got = "" if error["type"] == "missing" else f", got {error['input']!r:.80}"
    return f"{where}: {text[:1].lower()}{text[1:]}{got}"


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidSettingError(f"{file} is not a TOML file of settings: {error}") from None
