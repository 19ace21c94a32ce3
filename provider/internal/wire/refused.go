package wire

import (
	"errors"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"goclaw/llm"
)

// Spot is where an error says that a request is wrong: the index of a message
// as it is on the wire, and the index of a part of its content or of a call in
// it; -1 if the error does not say.
type Spot struct{ Message, Part, Call int }

// spots are the ways in which servers name a place:
//
//	messages.3.content.1.image.source.base64: ...    Anthropic
//	Invalid 'messages[3].tool_calls[0].function.name': ...
//	messages.[3].content.[1].image_url               OpenAI, in param
//	message[855].role                                DashScope
//	input[3].content[1].image_url                    OpenAI's Responses API
//
// badImage is what they say of an image without a place.
var spots = sync.OnceValue(func() (p struct{ place, badImage *regexp.Regexp }) {
	const index = `\.?\[?(\d+)\]?`
	p.place = regexp.MustCompile(`\b(?:messages?|input)` + index + `(?:\.content` + index + `|\.tool_calls` + index + `)?[\w.\[\]]*'?:? ?`)
	p.badImage = regexp.MustCompile(`(?i)\b(?:process|invalid|unsupported|valid|decode|corrupt\w*|load|parse)\b.{0,40}\bimages?\b|\bimages?\b.{0,60}\b(?:invalid|unsupported|not supported|too large|exceeds?|corrupt\w*|valid)\b`)
	return p
})

// Refused returns err as an *llm.RefusedError if it says that the server refuses
// a part of the request, and says which. At returns the message of the
// llm.Request and the block of it that are at a spot on the wire; either may be
// -1.
func Refused(err error, at func(Spot) (message, block int)) error {
	var api *llm.APIError
	if !errors.As(err, &api) || api.Kind != llm.ErrRefused || api.Status != http.StatusBadRequest && api.Status != http.StatusUnprocessableEntity {
		return err
	}
	why := strings.TrimPrefix(api.Message, RequestRefused+": ")
	m := spots().place.FindStringSubmatchIndex(why)
	text := why
	if m != nil {
		why = strings.TrimSpace(why[m[1]:])
	} else {
		m, text = spots().place.FindStringSubmatchIndex(api.Param), api.Param
	}
	e := &llm.RefusedError{Message: -1, Block: -1, Image: spots().badImage.MatchString(api.Message), Why: short(why, api), Err: err}
	if m == nil {
		if !e.Image {
			return err
		}
		return e
	}
	number := func(group int) int {
		if m[2*group] < 0 {
			return -1
		}
		return Int(text[m[2*group]:m[2*group+1]])
	}
	e.Message, e.Block = at(Spot{Message: number(1), Part: number(2), Call: number(3)})
	if e.Message < 0 {
		return err // it is not in the conversation
	}
	return e
}

// maxWhy bounds the words that are kept in a log and sent to a model.
const maxWhy = 200

// short returns why, or else the code, in few words.
func short(why string, api *llm.APIError) string {
	if why == "" {
		why = api.Code
	}
	if len(why) > maxWhy {
		why = strings.ToValidUTF8(why[:maxWhy], "") + "..."
	}
	return why
}
