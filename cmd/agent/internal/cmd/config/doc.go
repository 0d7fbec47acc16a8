// Package config is the command agent config: read, check and change settings.
package config
