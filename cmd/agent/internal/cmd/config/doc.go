// Package config is agent config: it prints, changes and checks the settings.
package config
