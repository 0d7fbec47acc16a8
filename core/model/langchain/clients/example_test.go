package clients_test

import (
	"fmt"
	"os"

	"github.com/seed-009c0928/agent/core/model/langchain/clients"
	"github.com/seed-009c0928/agent/core/model/wire"
)

func ExampleNew() {
	p, err := clients.New(clients.Config{Client: "cohere", Config: wire.Config{APIKey: os.Getenv("COHERE_API_KEY"), Model: "command-a-03-2025"}})
	fmt.Println(p, err)
	// Output: <nil> cohere: no API key: set providers.cohere.apiKey in the settings, for example to ${COHERE_API_KEY} (`agent config path` lists the files)
}
