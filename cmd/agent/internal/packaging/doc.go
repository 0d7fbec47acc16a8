// Command packaging writes what packages of the agent hold beside the program: man
// pages, shell completions and the licences of all libraries. The release runs it
// (.goreleaser.yaml):
//
//	go run ./cmd/agent/internal/packaging DIR
package main
