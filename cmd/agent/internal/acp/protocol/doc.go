// Package protocol has the messages of version 1 of the Agent Client Protocol,
// generated from its schema.
//
// schema.json is schema/v1/schema.json of the npm package @agentclientprotocol/sdk
// 2.4.0, from https://github.com/agentclientprotocol/agent-client-protocol, under the
// Apache License 2.0 in LICENSE. To update it, replace the file and run go generate.
package protocol
