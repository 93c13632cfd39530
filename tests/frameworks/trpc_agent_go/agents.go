package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"trpc.group/trpc-go/trpc-agent-go/agent"
	"trpc.group/trpc-go/trpc-agent-go/agent/graphagent"
	"trpc.group/trpc-go/trpc-agent-go/agent/llmagent"
	"trpc.group/trpc-go/trpc-agent-go/codeexecutor"
	"trpc.group/trpc-go/trpc-agent-go/event"
	"trpc.group/trpc-go/trpc-agent-go/graph"
	"trpc.group/trpc-go/trpc-agent-go/model"
	"trpc.group/trpc-go/trpc-agent-go/tool"
	"trpc.group/trpc-go/trpc-agent-go/tool/function"
)

type payment struct {
	To     string `json:"to"`
	Amount int    `json:"amount"`
}

// decision is what the graph is resumed with.
type decision struct {
	Action  string          `json:"action"`
	Args    json.RawMessage `json:"args"`
	Message string          `json:"message"`
}

type home struct{ folder string }

func (h home) pay(_ context.Context, given payment) (string, error) {
	if given.Amount < 0 {
		return "", errors.New("no such amount")
	}
	line, _ := json.Marshal(given)
	file, err := os.OpenFile(h.folder+"/effects.jsonl", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	defer file.Close()
	if _, err = file.Write(append(line, '\n')); err == nil {
		err = file.Sync()
	}
	if given.To == "die" {
		os.Exit(3)
	}
	return fmt.Sprintf("sent %d to %s", given.Amount, given.To), err
}

func (h home) tools() map[string]tool.Tool {
	pay := function.NewFunctionTool(h.pay, function.WithName("send_money"), function.WithDescription("Pays."))
	return map[string]tool.Tool{"send_money": pay}
}

// payments is a graph that asks about each call before its tools node runs it.
func (h home) payments(saver graph.CheckpointSaver) (agent.Agent, error) {
	tools := h.tools()
	nodes := graph.NewStateGraph(graph.MessagesStateSchema())
	nodes.AddLLMNode("plan", scripted{}, "", tools)
	nodes.AddNode("review", review)
	nodes.AddToolsNode("tools", tools)
	nodes.AddLLMNode("answer", scripted{}, "", tools)
	nodes.SetEntryPoint("plan")
	nodes.AddEdge("plan", "review")
	nodes.AddConditionalEdges("review", func(_ context.Context, state graph.State) (string, error) {
		if len(lastCalls(state)) > 0 {
			return "tools", nil
		}
		return "answer", nil
	}, map[string]string{"tools": "tools", "answer": "answer"})
	nodes.AddEdge("tools", "answer")
	nodes.SetFinishPoint("answer")
	compiled, err := nodes.Compile()
	if err != nil {
		return nil, err
	}
	return graphagent.New("payments", compiled, graphagent.WithCheckpointSaver(saver))
}

func review(ctx context.Context, state graph.State) (any, error) {
	emitter := graph.GetEventEmitterWithContext(ctx, state)
	calls := lastCalls(state)
	messages, _ := state[graph.StateKeyMessages].([]model.Message)
	var approved []model.ToolCall
	var denied []model.Message
	for place, call := range calls {
		_ = emitter.EmitProgress(100*float64(place)/float64(len(calls)), "checking "+call.ID)
		_ = emitter.EmitText("Asking about " + call.ID + ". ")
		_ = emitter.EmitCustom("review.asked", map[string]string{"call": call.ID})
		_ = emitter.Emit(event.New("", "", event.WithResponse(says("Money leaves.")), event.WithTag("audit")))
		prompt := map[string]any{"tool": call.Function.Name, "args": json.RawMessage(call.Function.Arguments)}
		value, err := graph.Interrupt(ctx, state, call.ID, prompt)
		if err != nil {
			return nil, err
		}
		var decided decision
		raw, _ := json.Marshal(value)
		if err := json.Unmarshal(raw, &decided); err != nil {
			return nil, fmt.Errorf("the answer to %s is no decision: %w", call.ID, err)
		}
		if decided.Action != "approve" {
			denied = append(denied, model.NewToolMessage(call.ID, call.Function.Name, "denied: "+decided.Message))
			continue
		}
		call.Function.Arguments = decided.Args
		approved = append(approved, call)
	}
	_ = emitter.EmitProgress(100, "checked")
	kept := append([]model.Message{}, messages[:len(messages)-1]...)
	kept = append(kept, model.Message{Role: model.RoleAssistant, ToolCalls: approved})
	return graph.State{graph.StateKeyMessages: []graph.MessageOp{
		graph.RemoveAllMessages{}, graph.AppendMessages{Items: append(kept, denied...)},
	}}, nil
}

func says(text string) *model.Response {
	return &model.Response{Object: model.ObjectTypeChatCompletion, Choices: []model.Choice{{
		Message: model.NewAssistantMessage(text),
	}}}
}

func lastCalls(state graph.State) []model.ToolCall {
	messages, _ := state[graph.StateKeyMessages].([]model.Message)
	for place := len(messages) - 1; place >= 0; place-- {
		if messages[place].Role == model.RoleAssistant {
			return messages[place].ToolCalls
		}
	}
	return nil
}

// office is a graph whose only node is the graph of payments.
func office(payments agent.Agent, saver graph.CheckpointSaver) (agent.Agent, error) {
	nodes := graph.NewStateGraph(graph.MessagesStateSchema())
	nodes.AddAgentNode(payments.Info().Name)
	nodes.SetEntryPoint(payments.Info().Name)
	nodes.SetFinishPoint(payments.Info().Name)
	compiled, err := nodes.Compile()
	if err != nil {
		return nil, err
	}
	inner := graphagent.WithSubAgents([]agent.Agent{payments})
	return graphagent.New("office", compiled, inner, graphagent.WithCheckpointSaver(saver))
}

// helper is an agent of one model, with a tool of each kind, code and an agent to hand off to.
func (h home) helper() agent.Agent {
	book := func(_ context.Context, given payment) (map[string]string, error) {
		return map[string]string{"status": "pending", "ticket": "t-" + given.To}, nil
	}
	say := func(_ context.Context, given payment) (string, error) { return "said " + given.To, nil }
	clerk := llmagent.New("clerk", llmagent.WithModel(scripted{}), llmagent.WithDescription("Files things."))
	return llmagent.New("helper",
		llmagent.WithModel(scripted{}),
		llmagent.WithDescription("Helps."),
		llmagent.WithInstruction("Help."),
		llmagent.WithSubAgents([]agent.Agent{clerk}),
		llmagent.WithCodeExecutor(echo{}),
		llmagent.WithTools([]tool.Tool{
			h.tools()["send_money"],
			function.NewFunctionTool(book, function.WithName("book"), function.WithDescription("Books."),
				function.WithLongRunning(true)),
			function.NewFunctionTool(say, function.WithName("say"), function.WithDescription("Says."),
				function.WithSkipSummarization(true)),
		}),
	)
}

// echo is a code executor whose only program prints itself.
type echo struct{}

func (echo) CodeBlockDelimiter() codeexecutor.CodeBlockDelimiter {
	return codeexecutor.CodeBlockDelimiter{Start: "```", End: "```"}
}

func (echo) ExecuteCode(_ context.Context, given codeexecutor.CodeExecutionInput) (codeexecutor.CodeExecutionResult, error) {
	output := ""
	for _, block := range given.CodeBlocks {
		output += block.Code
	}
	return codeexecutor.CodeExecutionResult{Output: output}, nil
}
