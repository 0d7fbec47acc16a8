// Package config reads the settings of the agent command: defaults, the user's
// settings.json, the project's, the environment, and flags, each laid over the
// ones before.
//
// [Settings] is the one description: its tags hold each key's documentation,
// default, bounds and scope, and from them come the defaults, the checks, the
// JSON Schema ([Schema]) and docs/configuration.md. A new provider is a field of
// [Providers].
//
// What is wrong in a file is an [*Error] that names file, line and column, and
// then nothing is applied. A key never leaves a [Secret] but through Reveal.
package config

//go:generate go test -run TestConfigurationPage -update .
