/*
 * Asks Apache RocketMQ's own filter, one question for each line of standard input, one answer for
 * each line of standard output. Texts are Base64 of UTF-8.
 *
 *     sql    EXPRESSION [NAME VALUE]...    REFUSED, TRUE, FALSE, NULL or ERROR
 *     bloom  ERROR-PERCENT CONSUMERS TEXT  the number of bits, then the positions
 */

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import org.apache.rocketmq.filter.FilterFactory;
import org.apache.rocketmq.filter.expression.EvaluationContext;
import org.apache.rocketmq.filter.expression.Expression;
import org.apache.rocketmq.filter.util.BloomFilter;

public class FilterProbe {
    public static void main(String[] arguments) throws Exception {
        BufferedReader questions =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        StringBuilder answers = new StringBuilder();
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            String[] words = line.split(" ", -1);
            answers.append(words[0].equals("sql") ? sql(words) : bloom(words)).append('\n');
        }
        new PrintStream(System.out, true, "US-ASCII").print(answers);
    }

    private static String sql(String[] words) {
        Expression expression;
        try {
            expression = FilterFactory.INSTANCE.get("SQL92").compile(text(words[1]));
        } catch (Throwable refused) {
            return "REFUSED";
        }
        Map<String, String> properties = new HashMap<>();
        for (int i = 2; i < words.length; i += 2) {
            properties.put(text(words[i]), text(words[i + 1]));
        }
        try {
            Object value = expression.evaluate(new EvaluationContext() {
                public Object get(String name) {
                    return properties.get(name);
                }

                public Map<String, Object> keyValues() {
                    return new HashMap<>(properties);
                }
            });
            return value == null ? "NULL" : value.toString().toUpperCase();
        } catch (Throwable error) {
            return "ERROR";
        }
    }

    private static String bloom(String[] words) {
        BloomFilter filter =
            BloomFilter.createByFn(Integer.parseInt(words[1]), Integer.parseInt(words[2]));
        StringBuilder answer = new StringBuilder().append(filter.getM());
        for (int position : filter.calcBitPositions(text(words[3]))) {
            answer.append(' ').append(position);
        }
        return answer.toString();
    }

    private static String text(String word) {
        return new String(Base64.getDecoder().decode(word), StandardCharsets.UTF_8);
    }
}
