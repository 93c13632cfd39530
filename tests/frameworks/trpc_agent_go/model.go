package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"trpc.group/trpc-go/trpc-agent-go/model"
)

// scripted is a model without a network: it calls what the user lists as [[tool, arguments], ...], or says what came back.
type scripted struct{}

func (scripted) Info() model.Info { return model.Info{Name: "scripted"} }

func (scripted) GenerateContent(_ context.Context, request *model.Request) (<-chan *model.Response, error) {
	calls, results := readTurn(request.Messages)
	answers := make(chan *model.Response, 8)
	defer close(answers)
	id := fmt.Sprintf("resp-%d", time.Now().UnixNano())
	delta := func(message model.Message) {
		answers <- answer(id, model.ObjectTypeChatCompletionChunk, model.Choice{Delta: message})
	}
	if len(calls) > 0 {
		message := model.Message{Role: model.RoleAssistant, ToolCalls: calls}
		answers <- final(answer(id, model.ObjectTypeChatCompletion, model.Choice{Message: message}))
		return answers, nil
	}
	text := "done: " + strings.Join(results, "; ")
	if last := request.Messages[len(request.Messages)-1]; last.Role == model.RoleUser && isCode(last.Content) {
		text = last.Content // runs as code
	}
	delta(model.Message{Role: model.RoleAssistant, ReasoningContent: "All calls have ended."})
	for _, word := range strings.SplitAfter(text, ": ") {
		delta(model.Message{Role: model.RoleAssistant, Content: word})
	}
	message := model.Message{Role: model.RoleAssistant, Content: text}
	answers <- final(answer(id, model.ObjectTypeChatCompletion, model.Choice{Message: message}))
	return answers, nil
}

func answer(id, object string, choice model.Choice) *model.Response {
	partial := object == model.ObjectTypeChatCompletionChunk
	return &model.Response{
		ID: id, Object: object, Model: "scripted", Created: time.Now().Unix(), Timestamp: time.Now(),
		Choices: []model.Choice{choice}, IsPartial: partial,
	}
}

func final(response *model.Response) *model.Response {
	response.Done = true
	response.Usage = &model.Usage{PromptTokens: 11, CompletionTokens: 7, TotalTokens: 18}
	return response
}

func isCode(text string) bool {
	return strings.HasPrefix(text, "```") && strings.HasSuffix(text, "```")
}

// readTurn returns the calls that the last user message lists, or the results that came after it.
func readTurn(messages []model.Message) (calls []model.ToolCall, results []string) {
	for place, message := range messages {
		if message.Role == model.RoleTool {
			results = append(results, message.Content)
		}
		if message.Role != model.RoleUser {
			continue
		}
		var listed [][2]json.RawMessage
		calls, results = nil, nil
		if json.Unmarshal([]byte(message.Content), &listed) != nil {
			results = append(results, message.Content)
		}
		for number, row := range listed {
			var name string
			_ = json.Unmarshal(row[0], &name)
			function := model.FunctionDefinitionParam{Name: name, Arguments: row[1]}
			id := fmt.Sprintf("call_%d_%d", place, number)
			calls = append(calls, model.ToolCall{Type: "function", ID: id, Function: function})
		}
	}
	if len(results) > 0 {
		calls = nil
	}
	return calls, results
}
