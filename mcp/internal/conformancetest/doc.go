// Package conformancetest runs the official conformance suite of the Model
// Context Protocol in Go tests. The suite is a Node.js program; both are pinned
// in mcp/testdata/conformance and installed with
//
//	cp mcp/testdata/conformance/package*.json DIR
//	npm ci --prefix DIR --ignore-scripts
//	AGENT_MCP_CONFORMANCE=DIR go test ./mcp/internal/conformancetest ./mcp/server
//
// Without the variable the tests are skipped. For each protocol revision exactly
// its required scenarios count, as of its release. A scenario without any check
// counts as failed.
package conformancetest
