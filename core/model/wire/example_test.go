package wire_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/seed-009c0928/agent/core/model/wire"
)

// A client reaches what a service has below its base URL, with the key.
func ExampleClient_GetJSON() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"data":[{"id":"model-1"}],"path":%q}`, r.URL.Path)
	}))
	defer server.Close()
	c, err := wire.New(wire.Config{Name: "mine", BaseURL: server.URL + "/v1", APIKey: "key-1234567890"}, wire.Dialect{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var list struct {
		Data []struct{ ID string }
		Path string
	}
	if err := c.GetJSON(context.Background(), c.URL("models"), &list); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(list.Path, list.Data[0].ID)
	// Output: /v1/models model-1
}
