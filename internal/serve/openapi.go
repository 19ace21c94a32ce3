package serve

import (
	_ "embed"
	"net/http"
)

//go:embed openapi.json
var document []byte

func (s *Server) openapi(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/json")
	_, err := w.Write(document)
	return err
}
