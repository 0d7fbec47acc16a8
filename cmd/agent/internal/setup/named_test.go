package setup

import (
	"reflect"
	"testing"

	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/core/model/langchain/clients"
)

// TestLangchainClients checks that the settings accept exactly the clients.
func TestLangchainClients(t *testing.T) {
	if got := config.Choices("providers.work.client"); !reflect.DeepEqual(got, clients.Names()) {
		t.Errorf("the settings accept %v, the clients are %v", got, clients.Names())
	}
}
