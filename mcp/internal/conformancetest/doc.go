// Package conformancetest runs the official conformance suite of the Model
// Context Protocol from Go tests. The suite is a program for Node; the two are
// pinned in mcp/testdata/conformance and installed with
//
//	cp mcp/testdata/conformance/package*.json DIR
//	npm ci --prefix DIR --ignore-scripts
//	AGENT_MCP_CONFORMANCE=DIR go test ./mcp/internal/conformancetest ./mcp/server
//
// Without the variable the tests are skipped. Of each revision of the protocol
// exactly the scenarios count that it requires, frozen at its release. One
// without a single check counts as failed: nothing was seen.
package conformancetest
