package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"goclaw/session"
)

// problem is an error in the form of RFC 9457.
type problem struct {
	Type   string `json:"type"` // about:blank: Title says all
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
}

func (p *problem) Error() string { return p.Detail }

// wrong returns the problem of a request that cannot be answered.
func wrong(status int, format string, args ...any) *problem {
	return &problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...)}
}

// Wrong returns the error of a Backend for a request that cannot be answered.
func Wrong(status int, format string, args ...any) error { return wrong(status, format, args...) }

// problemOf returns err as a problem.
func problemOf(err error) *problem {
	var p *problem
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &large):
		return wrong(http.StatusRequestEntityTooLarge, "the body of the request is longer than %d bytes", large.Limit)
	case errors.Is(err, session.ErrNotFound):
		return wrong(http.StatusNotFound, "%s", err)
	case errors.Is(err, session.ErrConflict), errors.Is(err, session.ErrHeld):
		return wrong(http.StatusConflict, "%s", err)
	case errors.Is(err, session.ErrFull):
		return wrong(http.StatusInsufficientStorage, "%s", err)
	}
	return wrong(http.StatusInternalServerError, "%s", err)
}

func (p *problem) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	json.NewEncoder(w).Encode(p)
}

// writeJSON answers with v.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(body, '\n'))
	return nil
}
