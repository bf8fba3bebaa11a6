import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.text.SimpleDateFormat;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Comparator;
import java.util.Date;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.PullCallback;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.MessageQueueSelector;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;
import org.apache.rocketmq.remoting.RPCHook;

/**
 * The Java client as a program: a command in JSON on each line of standard input, answers and what
 * consumers receive as lines of JSON on standard output. README.md beside it has the words.
 * It compiles with 4.9 and with 5.x, so what moved between them is reached by reflection.
 */
public final class Peer {
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private static final Map<String, Runnable> STOPS = new ConcurrentHashMap<>();
    private static final Map<String, DefaultMQProducer> PRODUCERS = new ConcurrentHashMap<>();
    private static final MessageQueueSelector BY_SHARD =
        (queues, message, shard) -> queues.get(Math.floorMod(shard.hashCode(), queues.size()));
    private static String names;

    public static void main(String[] arguments) throws Exception {
        names = arguments[0];
        System.setOut(System.err);
        ExecutorService workers = Executors.newCachedThreadPool();
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JSONObject command = JSON.parseObject(line);
            workers.execute(() -> answer(command));
        }
        // Halt, so that no client thread holds up the end of a test.
        Runtime.getRuntime().halt(0);
    }

    private static void answer(JSONObject command) {
        JSONObject answer = new JSONObject();
        answer.put("id", command.get("id"));
        try {
            answer.put("result", run(command));
        } catch (Throwable error) {
            answer.put("error", error + code(error));
        }
        print(answer);
    }

    /** After some tries the client's exception has the broker's last code, and does not say so. */
    private static String code(Throwable error) {
        return error instanceof MQClientException
            ? " (last code: " + ((MQClientException) error).getResponseCode() + ")" : "";
    }

    private static void print(JSONObject line) {
        OUT.println(line.toJSONString());
    }

    private static Object run(JSONObject command) throws Exception {
        switch (command.getString("op")) {
            case "producer":
                return producer(command);
            case "send":
                return send(command);
            case "recall":
                return recall(command);
            case "request":
                return request(command);
            case "consumer":
                return consumer(command);
            case "lite":
                return lite(command);
            case "pull":
                return pull(command);
            case "pull_one":
                return pullOne(command);
            case "query":
                return query(command);
            case "stop":
                STOPS.remove(command.getString("name")).run();
                return null;
            default:
                throw new IllegalArgumentException("no such op: " + command.getString("op"));
        }
    }

    // -- producing -----------------------------------------------------------------------------

    /** What signs requests, if this program was started with the keys of an account. */
    private static RPCHook hook() {
        String key = System.getProperty("accessKey");
        if (key == null) {
            return null;
        }
        return new AclClientRPCHook(new SessionCredentials(key, System.getProperty("secretKey")));
    }

    private static Object producer(JSONObject command) throws Exception {
        String name = command.getString("name");
        String group = command.getString("group");
        DefaultMQProducer producer = command.getBooleanValue("traces")
            ? new DefaultMQProducer(group, hook(), true, null) : deciding(group);
        producer.setNamesrvAddr(names);
        producer.setInstanceName(name);
        producer.setSendMsgTimeout(10_000);
        producer.setSendLatencyFaultEnable(command.getBooleanValue("avoid_slow"));
        if (command.getBooleanValue("gathers")) {
            // 5.x: single sends go out as batches.
            DefaultMQProducer.class.getMethod("setAutoBatch", boolean.class).invoke(producer, true);
        }
        hurry(command, producer);
        producer.start();
        PRODUCERS.put(name, producer);
        STOPS.put(name, producer::shutdown);
        return null;
    }

    private static DefaultMQProducer deciding(String group) {
        TransactionMQProducer producer = new TransactionMQProducer(group, hook());
        producer.setTransactionListener(new Decisions());
        return producer;
    }

    /** Looks for routes and says that it is there every second; both are every 30 s else. */
    private static void hurry(JSONObject command, ClientConfig client) {
        if (command.getBooleanValue("quick")) {
            client.setPollNameServerInterval(1000);
            client.setHeartbeatBrokerInterval(1000);
        }
    }

    /** Decides as the message's own properties say. */
    private static final class Decisions implements TransactionListener {
        @Override
        public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
            return state(message.getUserProperty("decide"));
        }

        @Override
        public LocalTransactionState checkLocalTransaction(MessageExt message) {
            JSONObject event = new JSONObject();
            event.put("event", "check");
            event.put("body", text(message.getBody()));
            print(event);
            return state(message.getUserProperty("check"));
        }

        private static LocalTransactionState state(String word) {
            switch (word) {
                case "commit":
                    return LocalTransactionState.COMMIT_MESSAGE;
                case "rollback":
                    return LocalTransactionState.ROLLBACK_MESSAGE;
                default:
                    return LocalTransactionState.UNKNOW;
            }
        }
    }

    private static Message message(String topic, JSONObject given) throws Exception {
        byte[] body = given.containsKey("base64")
            ? Base64.getDecoder().decode(given.getString("base64"))
            : given.getString("body").getBytes(StandardCharsets.UTF_8);
        Message message = new Message(topic, body);
        if (given.containsKey("tag")) {
            message.setTags(given.getString("tag"));
        }
        if (given.containsKey("keys")) {
            message.setKeys(given.getString("keys"));
        }
        if (given.containsKey("delay")) {
            message.setDelayTimeLevel(given.getIntValue("delay"));
        }
        if (given.containsKey("timer_s")) {
            Message.class.getMethod("setDelayTimeSec", long.class)
                .invoke(message, given.getLongValue("timer_s"));
        }
        JSONObject properties = given.getJSONObject("properties");
        if (properties != null) {
            properties.keySet().forEach(
                name -> message.putUserProperty(name, properties.getString(name)));
        }
        return message;
    }

    private static Object send(JSONObject command) throws Exception {
        DefaultMQProducer producer = PRODUCERS.get(command.getString("producer"));
        String topic = command.getString("topic");
        JSONArray given = command.getJSONArray("messages");
        switch (command.getString("how")) {
            case "async":
                return sendAsync(producer, topic, given);
            case "oneway":
                for (int i = 0; i < given.size(); i++) {
                    sendOneway(producer, topic, given.getJSONObject(i));
                }
                return null;
            case "batch":
                List<Message> batch = new ArrayList<>();
                for (int i = 0; i < given.size(); i++) {
                    batch.add(message(topic, given.getJSONObject(i)));
                }
                return Arrays.asList(told(producer.send(batch)));
            default:
                List<Object> results = new ArrayList<>();
                for (int i = 0; i < given.size(); i++) {
                    JSONObject one = given.getJSONObject(i);
                    results.add(told(sendOne(producer, topic, one, command.getString("how"))));
                }
                return results;
        }
    }

    private static SendResult sendOne(
            DefaultMQProducer producer, String topic, JSONObject given, String how)
            throws Exception {
        Message message = message(topic, given);
        if (how.equals("transaction")) {
            return producer.sendMessageInTransaction(message, null);
        }
        if (given.containsKey("shard")) {
            return producer.send(message, BY_SHARD, given.getString("shard"));
        }
        if (given.containsKey("queue")) {
            return producer.send(message, queue(producer, topic, given.getIntValue("queue")));
        }
        return producer.send(message);
    }

    private static void sendOneway(DefaultMQProducer producer, String topic, JSONObject given)
            throws Exception {
        Message message = message(topic, given);
        if (given.containsKey("shard")) {
            producer.sendOneway(message, BY_SHARD, given.getString("shard"));
        } else if (given.containsKey("queue")) {
            producer.sendOneway(message, queue(producer, topic, given.getIntValue("queue")));
        } else {
            producer.sendOneway(message);
        }
    }

    private static Object sendAsync(DefaultMQProducer producer, String topic, JSONArray given)
            throws Exception {
        Object[] results = new Object[given.size()];
        CountDownLatch left = new CountDownLatch(given.size());
        for (int i = 0; i < given.size(); i++) {
            JSONObject one = given.getJSONObject(i);
            Message message = message(topic, one);
            int place = i;
            SendCallback callback = new SendCallback() {
                @Override
                public void onSuccess(SendResult result) {
                    put(results[place] == null ? told(result) : "called twice");
                }

                @Override
                public void onException(Throwable error) {
                    put(String.valueOf(error));
                }

                private void put(Object result) {
                    results[place] = result;
                    left.countDown();
                }
            };
            if (one.containsKey("shard")) {
                producer.send(message, BY_SHARD, one.getString("shard"), callback);
            } else if (one.containsKey("queue")) {
                producer.send(message, queue(producer, topic, one.getIntValue("queue")), callback);
            } else {
                producer.send(message, callback);
            }
        }
        if (!left.await(30, TimeUnit.SECONDS)) {
            throw new IllegalStateException(left.getCount() + " callbacks have not been called");
        }
        return results;
    }

    private static MessageQueue queue(DefaultMQProducer producer, String topic, int id)
            throws Exception {
        for (MessageQueue queue : producer.fetchPublishMessageQueues(topic)) {
            if (queue.getQueueId() == id) {
                return queue;
            }
        }
        throw new IllegalArgumentException("no queue " + id);
    }

    /** Takes a timer back, which 5.x can. */
    private static Object recall(JSONObject command) throws Exception {
        DefaultMQProducer producer = PRODUCERS.get(command.getString("producer"));
        return DefaultMQProducer.class.getMethod("recallMessage", String.class, String.class)
            .invoke(producer, command.getString("topic"), command.getString("handle"));
    }

    /** The handle of a timer; releases without timers have none. */
    private static Object handle(SendResult result) {
        try {
            return SendResult.class.getMethod("getRecallHandle").invoke(result);
        } catch (ReflectiveOperationException error) {
            return null;
        }
    }

    private static JSONObject told(SendResult result) {
        JSONObject told = new JSONObject();
        told.put("status", result.getSendStatus().name());
        told.put("key", result.getMsgId());
        told.put("place", result.getOffsetMsgId());
        if (result.getMessageQueue() != null) {
            told.put("queue", result.getMessageQueue().getQueueId());
            told.put("broker", result.getMessageQueue().getBrokerName());
        }
        told.put("offset", result.getQueueOffset());
        told.put("handle", handle(result));
        return told;
    }

    private static Object request(JSONObject command) throws Exception {
        DefaultMQProducer producer = PRODUCERS.get(command.getString("producer"));
        Message message = message(command.getString("topic"), command);
        return text(producer.request(message, command.getLongValue("timeout_ms")).getBody());
    }

    // -- consuming -----------------------------------------------------------------------------

    private static String moment(long millis) {
        return new SimpleDateFormat("yyyyMMddHHmmss").format(new Date(millis));
    }

    /** Sets an enumeration whose package differs between the releases. */
    @SuppressWarnings({"unchecked", "rawtypes"})
    private static void setEnum(Object object, String setter, String value) throws Exception {
        for (Method method : object.getClass().getMethods()) {
            if (method.getName().equals(setter)) {
                Class type = method.getParameterTypes()[0];
                method.invoke(object, Enum.valueOf(type, value));
                return;
            }
        }
        throw new NoSuchMethodException(setter);
    }

    private static Object consumer(JSONObject command) throws Exception {
        String name = command.getString("name");
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(
            command.getString("group"), hook(), new AllocateMessageQueueAveragely(),
            command.getBooleanValue("traces"), null);
        consumer.setNamesrvAddr(names);
        consumer.setInstanceName(name);
        hurry(command, consumer);
        int threads = Math.max(2, command.getIntValue("threads"));
        consumer.setConsumeThreadMin(threads);
        consumer.setConsumeThreadMax(threads);
        String from = command.getString("from");
        consumer.setConsumeFromWhere(ConsumeFromWhere.valueOf(
            "timestamp".equals(from) ? "CONSUME_FROM_TIMESTAMP"
                : "last".equals(from) ? "CONSUME_FROM_LAST_OFFSET" : "CONSUME_FROM_FIRST_OFFSET"));
        if (command.containsKey("moment")) {
            consumer.setConsumeTimestamp(moment(command.getLongValue("moment")));
        }
        if (command.containsKey("retries")) {
            consumer.setMaxReconsumeTimes(command.getIntValue("retries"));
        }
        if (command.getBooleanValue("pops")) {
            // The broker shares queues out, and hands out messages one by one where it says so.
            DefaultMQPushConsumer.class.getMethod("setClientRebalance", boolean.class)
                .invoke(consumer, false);
        }
        if (command.getBooleanValue("broadcast")) {
            setEnum(consumer, "setMessageModel", "BROADCASTING");
        }
        String topic = command.getString("topic");
        if (command.containsKey("sql")) {
            consumer.subscribe(topic, MessageSelector.bySql(command.getString("sql")));
        } else {
            consumer.subscribe(topic, command.getString("tag"));
        }
        if (command.getBooleanValue("orderly")) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) ->
                consumed(command, messages) ? ConsumeOrderlyStatus.SUCCESS
                    : ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT);
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) ->
                consumed(command, messages) ? ConsumeConcurrentlyStatus.CONSUME_SUCCESS
                    : ConsumeConcurrentlyStatus.RECONSUME_LATER);
        }
        consumer.start();
        STOPS.put(name, consumer::shutdown);
        return null;
    }

    private static boolean consumed(JSONObject command, List<MessageExt> messages) {
        boolean good = true;
        for (MessageExt message : messages) {
            JSONObject event = event(command, message);
            if (command.containsKey("takes_ms")) {
                sleep(command.getLongValue("takes_ms"));
                event.put("ended", System.currentTimeMillis());
            }
            print(event);
            good &= message.getReconsumeTimes() >= command.getIntValue("failures");
            if (command.containsKey("reply_as")) {
                reply(message, PRODUCERS.get(command.getString("reply_as")));
            }
        }
        return good;
    }

    private static void sleep(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    private static void reply(MessageExt message, DefaultMQProducer producer) {
        try {
            byte[] body = ("re: " + text(message.getBody())).getBytes(StandardCharsets.UTF_8);
            producer.send(MessageUtil.createReplyMessage(message, body));
        } catch (Exception error) {
            error.printStackTrace();
        }
    }

    private static JSONObject event(JSONObject command, MessageExt message) {
        JSONObject event = new JSONObject();
        event.put("event", "message");
        event.put("received", System.currentTimeMillis());
        event.put("consumer", command.getString("name"));
        event.put("topic", message.getTopic());
        if (command.getBooleanValue("raw")) {
            event.put("base64", Base64.getEncoder().encodeToString(message.getBody()));
        } else {
            event.put("body", text(message.getBody()));
        }
        event.put("tag", message.getTags());
        event.put("keys", message.getKeys());
        event.put("queue", message.getQueueId());
        event.put("offset", message.getQueueOffset());
        event.put("times", message.getReconsumeTimes());
        event.put("born", message.getBornTimestamp());
        event.put("stored", message.getStoreTimestamp());
        event.put("key", message.getMsgId());
        event.put("born_at", String.valueOf(message.getBornHost()));
        event.put("stored_at", String.valueOf(message.getStoreHost()));
        event.put("log_offset", message.getCommitLogOffset());
        event.put("properties", message.getProperties());
        return event;
    }

    private static String text(byte[] body) {
        return new String(body, StandardCharsets.UTF_8);
    }

    // -- what other clients do not have ----------------------------------------------------------

    /** The consumer that the application asks: polls until so many have come, then commits. */
    private static Object lite(JSONObject command) throws Exception {
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(command.getString("group"));
        consumer.setNamesrvAddr(names);
        consumer.setInstanceName(command.getString("name"));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setAutoCommit(false);
        consumer.subscribe(command.getString("topic"), command.getString("tag"));
        consumer.start();
        List<Object> found = new ArrayList<>();
        try {
            long end = System.currentTimeMillis() + 50_000;
            while (found.size() < command.getIntValue("count")
                    && System.currentTimeMillis() < end) {
                consumer.poll(500).forEach(message -> found.add(event(command, message)));
            }
            consumer.poll(1500).forEach(message -> found.add(event(command, message)));
            consumer.commitSync();
        } finally {
            consumer.shutdown();
        }
        return found;
    }

    /** The oldest consumer: every queue is read from an offset, and asked for its ends. */
    @SuppressWarnings("deprecation")
    private static Object pull(JSONObject command) throws Exception {
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer(command.getString("group"));
        consumer.setNamesrvAddr(names);
        consumer.setInstanceName(command.getString("name"));
        consumer.start();
        List<Object> queues = new ArrayList<>();
        try {
            String topic = command.getString("topic");
            List<MessageQueue> sorted = new ArrayList<>(consumer.fetchSubscribeMessageQueues(topic));
            sorted.sort(Comparator.comparingInt(MessageQueue::getQueueId));
            for (MessageQueue queue : sorted) {
                JSONObject told = new JSONObject();
                told.put("min", consumer.minOffset(queue));
                told.put("max", consumer.maxOffset(queue));
                told.put("at", consumer.searchOffset(queue, command.getLongValue("moment")));
                told.put("found", pullQueue(command, consumer, queue));
                queues.add(told);
            }
        } finally {
            consumer.shutdown();
        }
        return queues;
    }

    @SuppressWarnings("deprecation")
    private static Object pullQueue(
            JSONObject command, DefaultMQPullConsumer consumer, MessageQueue queue)
            throws Exception {
        List<Object> found = new ArrayList<>();
        long offset = command.getLongValue("offset");
        while (offset < consumer.maxOffset(queue)) {
            PullResult pulled = consumer.pull(queue, command.getString("tag"), offset, 3);
            if (pulled.getNextBeginOffset() <= offset) {
                throw new IllegalStateException("it does not lead on: " + pulled);
            }
            offset = pulled.getNextBeginOffset();
            if (pulled.getMsgFoundList() != null) {
                pulled.getMsgFoundList().forEach(message -> found.add(event(command, message)));
            }
        }
        return found;
    }

    /** One pull, in the way that is asked for: at once, held until a message comes, or called back. */
    @SuppressWarnings("deprecation")
    private static Object pullOne(JSONObject command) throws Exception {
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer(command.getString("group"));
        consumer.setNamesrvAddr(names);
        consumer.setInstanceName(command.getString("name"));
        consumer.start();
        try {
            MessageQueue queue = null;
            for (MessageQueue one : consumer.fetchSubscribeMessageQueues(command.getString("topic"))) {
                queue = one.getQueueId() == command.getIntValue("queue") ? one : queue;
            }
            return pulled(command, consumer, queue);
        } finally {
            consumer.shutdown();
        }
    }

    @SuppressWarnings("deprecation")
    private static Object pulled(
            JSONObject command, DefaultMQPullConsumer consumer, MessageQueue queue)
            throws Exception {
        String tag = command.getString("tag");
        long offset = command.getLongValue("offset");
        CompletableFuture<PullResult> later = new CompletableFuture<>();
        PullCallback callback = new PullCallback() {
            @Override
            public void onSuccess(PullResult result) {
                later.complete(result);
            }

            @Override
            public void onException(Throwable error) {
                later.completeExceptionally(error);
            }
        };
        switch (command.getString("how")) {
            case "block":
                later.complete(consumer.pullBlockIfNotFound(queue, tag, offset, 8));
                break;
            case "block_async":
                consumer.pullBlockIfNotFound(queue, tag, offset, 8, callback);
                break;
            case "async":
                consumer.pull(queue, tag, offset, 8, callback);
                break;
            default:
                later.complete(consumer.pull(queue, tag, offset, 8));
        }
        PullResult result = later.get(60, TimeUnit.SECONDS);
        JSONObject told = new JSONObject();
        told.put("status", result.getPullStatus().name());
        told.put("next", result.getNextBeginOffset());
        told.put("min", result.getMinOffset());
        told.put("max", result.getMaxOffset());
        List<Object> found = new ArrayList<>();
        if (result.getMsgFoundList() != null) {
            result.getMsgFoundList().forEach(message -> found.add(event(command, message)));
        }
        told.put("found", found);
        return told;
    }

    /** Looks single messages up: by key, by the producer's unique key, by place in the log. */
    private static Object query(JSONObject command) throws Exception {
        DefaultMQAdminExt admin = new DefaultMQAdminExt();
        admin.setNamesrvAddr(names);
        admin.setInstanceName(command.getString("name"));
        admin.start();
        try {
            String topic = command.getString("topic");
            List<Object> found = new ArrayList<>();
            if (command.containsKey("message")) {
                found.add(event(command, admin.viewMessage(topic, command.getString("message"))));
            } else {
                admin.queryMessage(topic, command.getString("keys"), 32, 0, Long.MAX_VALUE / 2)
                    .getMessageList().forEach(message -> found.add(event(command, message)));
            }
            return found;
        } finally {
            admin.shutdown();
        }
    }
}
