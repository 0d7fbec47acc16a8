// Package client is a client of the HTTP API of a service, see
// [github.com/seed-009c0928/agent/sdk/service/api]:
//
//	c, err := client.New(client.Options{URL: "http://127.0.0.1:7433", Token: token})
//	s, err := c.Create(ctx, client.NewSession{Content: client.Text("Fix the failing test.")})
//	for r, err := range c.Events(ctx, s.ID, 0) {
//		… // until the event result whose Run is s.ID
//	}
//
// Commands have IDs, and of several with the same ID one is carried out: a command that
// got no answer can be sent again. [Client.Events] connects again when the connection is
// lost, and misses no event but deltas.
package client
