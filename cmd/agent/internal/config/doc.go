// Package config reads the settings of the agent command: defaults, the user's
// settings.json, the project's, the environment, and flags, each overriding the
// ones before.
//
// [Settings] is the single source: its tags hold each key's documentation,
// default, bounds and scope, and from them come the defaults, the checks, the
// JSON Schema ([Schema]) and docs/configuration.md. A new provider is a field of
// [Providers].
//
// A mistake in a file is an [*Error] that names file, line and column; nothing
// is applied then. A key leaves a [Secret] only through Reveal.
package config

//go:generate go test -run TestConfigurationPage -update .
