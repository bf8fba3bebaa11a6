import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;

/**
 * The Java client as a program that is measured. Every 100 ms it prints a line: nanoseconds of a
 * clock, messages done.
 *
 *   Load send NAME_SERVER TOPIC BODY_BYTES THREADS SECONDS
 *   Load consume NAME_SERVER TOPIC GROUP MESSAGES SECONDS
 */
public final class Load {
    private static final AtomicLong COUNT = new AtomicLong();

    public static void main(String[] arguments) throws Exception {
        long most = Long.MAX_VALUE;
        if (arguments[0].equals("send")) {
            send(arguments[1], arguments[2], Integer.parseInt(arguments[3]),
                Integer.parseInt(arguments[4]));
        } else {
            most = Long.parseLong(arguments[4]);
            consume(arguments[1], arguments[2], arguments[3]);
        }
        long end = System.nanoTime() + (long) (Double.parseDouble(arguments[5]) * 1e9);
        while (System.nanoTime() < end && COUNT.get() < most) {
            System.out.println(System.nanoTime() + " " + COUNT.get());
            System.out.flush();
            Thread.sleep(100);
        }
        System.out.println(System.nanoTime() + " " + COUNT.get());
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static void send(String names, String topic, int bodyBytes, int threads)
            throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("bench_producers");
        producer.setNamesrvAddr(names);
        producer.setSendMsgTimeout(10_000);
        producer.start();
        byte[] body = new byte[bodyBytes];
        java.util.Arrays.fill(body, (byte) 'x');
        for (int i = 0; i < threads; i++) {
            Thread thread = new Thread(() -> {
                while (true) {
                    try {
                        producer.send(new Message(topic, body));
                        COUNT.incrementAndGet();
                    } catch (Exception error) {
                        System.err.println(error);
                    }
                }
            });
            thread.setDaemon(true);
            thread.start();
        }
    }

    private static void consume(String names, String topic, String group) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(names);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            COUNT.addAndGet(((List<?>) messages).size());
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
    }

    private Load() {
    }
}
